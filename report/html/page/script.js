// Search, filters, sorting, copying. Everything it shows is in the page already;
// it builds no markup from text and loads nothing.
(function () {
  "use strict";
  var doc = document;
  function all(sel, from) { return Array.prototype.slice.call((from || doc).querySelectorAll(sel)); }
  function one(id) { return doc.getElementById(id); }
  function say(text) { one("said").textContent = text; }
  all(".js").forEach(function (e) { e.hidden = false; });

  // Light or dark, for this view only.
  one("theme").addEventListener("click", function () {
    var root = doc.documentElement;
    var dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // Copy buttons.
  all("pre.cmd").forEach(function (pre) {
    var b = doc.createElement("button");
    b.type = "button";
    b.textContent = "copy";
    b.addEventListener("click", function () {
      var text = pre.querySelector("code").textContent;
      function done() { b.textContent = "✓"; say("copied"); setTimeout(function () { b.textContent = "copy"; }, 1500); }
      if (navigator.clipboard && navigator.clipboard.writeText) {
        navigator.clipboard.writeText(text).then(done, function () { select(pre); });
      } else { select(pre); }
    });
    pre.appendChild(b);
  });
  function select(pre) {
    var r = doc.createRange();
    r.selectNodeContents(pre.querySelector("code"));
    var s = getSelection();
    s.removeAllRanges();
    s.addRange(r);
  }

  // Findings: filters, kept in the address so that a view can be passed on.
  var list = one("list");
  if (list) {
    var cards = all(".finding", list);
    var texts = cards.map(function (c) { return c.textContent.toLowerCase(); });
    var boxes = all("input[name=severity]");
    var rank = { critical: 0, high: 1, medium: 2, low: 3, info: 4 };
    var apply = function () {
      var q = one("q").value.toLowerCase().split(/\s+/).filter(Boolean);
      var on = {};
      boxes.forEach(function (b) { on[b.value] = b.checked; });
      var node = one("node").value, family = one("family").value, n = 0;
      cards.forEach(function (c, i) {
        var show = on[c.dataset.severity] && (!node || c.dataset.node === node) && (!family || c.dataset.family === family) &&
          q.every(function (w) { return texts[i].indexOf(w) >= 0; });
        c.hidden = !show;
        if (show) { n++; }
      });
      one("shown").textContent = one("shown").dataset.text.replace("%s", n).replace("%s", cards.length);
      one("nothing").hidden = n > 0;
    };
    var order = function () {
      var by = one("order").value;
      var sorted = cards.slice();
      if (by) {
        sorted.sort(function (a, b) {
          if (by === "severity") { return rank[a.dataset.severity] - rank[b.dataset.severity] || cards.indexOf(a) - cards.indexOf(b); }
          return a.dataset[by].localeCompare(b.dataset[by]) || cards.indexOf(a) - cards.indexOf(b);
        });
      }
      sorted.forEach(function (c) { list.appendChild(c); });
    };
    var write = function () {
      var p = [];
      if (one("q").value) { p.push("q=" + encodeURIComponent(one("q").value)); }
      if (boxes.some(function (b) { return !b.checked; })) { p.push("severity=" + boxes.filter(function (b) { return b.checked; }).map(function (b) { return b.value; }).join(",")); }
      ["node", "family", "order"].forEach(function (id) { if (one(id).value) { p.push(id + "=" + encodeURIComponent(one(id).value)); } });
      history.replaceState(null, "", p.length ? "#" + p.join("&") : "#findings");
    };
    var read = function () {
      if (location.hash.indexOf("=") < 0) { return; }
      location.hash.slice(1).split("&").forEach(function (kv) {
        var k = kv.split("=")[0], v = decodeURIComponent(kv.slice(k.length + 1));
        if (k === "severity") { boxes.forEach(function (b) { b.checked = v.split(",").indexOf(b.value) >= 0; }); }
        if (["q", "node", "family", "order"].indexOf(k) >= 0) { one(k).value = v; }
      });
      order();
    };
    read();
    apply();
    one("q").addEventListener("input", function () { apply(); write(); });
    boxes.concat([one("node"), one("family")]).forEach(function (e) { e.addEventListener("change", function () { apply(); write(); }); });
    one("order").addEventListener("change", function () { order(); write(); });
    var open = function (v) { return function () { all(".finding details").forEach(function (d) { d.open = v; }); }; };
    one("expand").addEventListener("click", open(true));
    one("collapse").addEventListener("click", open(false));
    // A link to a finding shows it, whatever the filter says.
    var reveal = function () {
      var t = location.hash.indexOf("=") < 0 && one(location.hash.slice(1));
      if (t && t.classList.contains("finding")) { t.hidden = false; t.querySelector("details").open = true; t.scrollIntoView(); }
    };
    addEventListener("hashchange", reveal);
    reveal();
  }

  // Search in tables.
  all("input.rows").forEach(function (input) {
    var rows = all("tbody tr", one(input.dataset.table)), texts = null, wait = 0;
    input.addEventListener("input", function () {
      clearTimeout(wait);
      wait = setTimeout(function () {
        texts = texts || rows.map(function (r) { return r.textContent.toLowerCase(); });
        var q = input.value.toLowerCase().split(/\s+/).filter(Boolean), n = 0;
        rows.forEach(function (r, i) {
          r.hidden = !q.every(function (w) { return texts[i].indexOf(w) >= 0; });
          if (!r.hidden) { n++; }
        });
        say(n + " / " + rows.length);
      }, 120);
    });
  });

  // Sorting by a column's heading.
  all("table.sortable").forEach(function (table) {
    all("thead th", table).forEach(function (th, col) {
      var b = doc.createElement("button");
      b.type = "button";
      while (th.firstChild) { b.appendChild(th.firstChild); }
      th.appendChild(b);
      b.addEventListener("click", function () {
        var up = th.getAttribute("aria-sort") !== "ascending";
        all("th", table).forEach(function (h) { h.removeAttribute("aria-sort"); });
        th.setAttribute("aria-sort", up ? "ascending" : "descending");
        var body = table.tBodies[0], rows = all("tr", body);
        var key = function (r) { var c = r.cells[col]; return c.dataset.sort === undefined ? c.textContent.trim() : Number(c.dataset.sort); };
        var keyed = rows.map(function (r, i) { return { r: r, k: key(r), i: i }; });
        keyed.sort(function (a, b) {
          var d = typeof a.k === "number" && typeof b.k === "number" ? a.k - b.k : String(a.k).localeCompare(String(b.k));
          return (up ? d : -d) || a.i - b.i;
        });
        keyed.forEach(function (x) { body.appendChild(x.r); });
      });
    });
  });

  // Today, beside the report's own as-of time.
  var g = one("gantt-time"), svg = one("gantt");
  if (g && svg) {
    var d = g.dataset, now = Date.now() / 1000;
    if (now > Number(d.from) && now < Number(d.to)) {
      var ns = "http://www.w3.org/2000/svg", x = Number(d.left) + (d.right - d.left) * (now - d.from) / (d.to - d.from);
      var line = doc.createElementNS(ns, "line");
      [["x1", x], ["x2", x], ["y1", 30], ["y2", d.bottom], ["class", "today"]].forEach(function (a) { line.setAttribute(a[0], a[1]); });
      svg.appendChild(line);
      var t = doc.createElementNS(ns, "text");
      [["x", x + 4], ["y", 42], ["class", "small"]].forEach(function (a) { t.setAttribute(a[0], a[1]); });
      t.textContent = d.text;
      svg.appendChild(t);
    }
  }

  // Print everything.
  addEventListener("beforeprint", function () { all("details").forEach(function (e) { e.open = true; }); });
})();
