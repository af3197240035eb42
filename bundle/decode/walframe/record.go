package walframe

// record takes a record whose checksum fits, or whose bytes nothing checks
// because it is the first one after a damaged stretch.
func (wk *walker) record(f *frame) {
	switch f.typ {
	case typeMetadata:
		wk.identity(f)
	case typeEntry:
		wk.entry(f)
	case typeState:
		wk.state(f)
	case typeSnapshot:
		wk.mark(f)
	default:
		wk.content(BadType, f)
	}
}

// content notes a record that could be read but not be used.
func (wk *walker) content(kind DamageKind, f *frame) {
	i := wk.damage(Damage{Kind: kind, Segment: wk.info.Name, Offset: f.off, End: f.end,
		Records: 1, Before: wk.index, Resumed: true})
	if i > 0 && f.typ == typeEntry {
		wk.pending = i
	}
}

func (wk *walker) identity(f *frame) {
	id, ok := parseIdentity(f.data)
	switch {
	case !ok:
		wk.content(BadContent, f)
	case !wk.log.Identified:
		wk.log.Identity, wk.log.Identified = id, true
	case wk.log.Identity != id:
		wk.content(IdentityDiffers, f)
	}
}

func (wk *walker) state(f *frame) {
	s, ok := parseHardState(f.data)
	if !ok {
		wk.content(BadContent, f)
		return
	}
	l := wk.log
	if s.Term < l.State.Term || s.Commit < l.State.Commit {
		wk.content(TermBack, f)
		return
	}
	l.State = s
	l.States++
}

func (wk *walker) mark(f *frame) {
	m, ok := parseSnapshotMark(f.data)
	if !ok {
		wk.content(BadContent, f)
		return
	}
	m.Segment, m.Offset = wk.info.Name, f.off
	wk.log.Marks.add(m)
	// A member that was sent a snapshot goes on behind it: the entries up to
	// it were never in its log.
	if m.Index > wk.index {
		wk.seen(m.Index)
		wk.index, wk.term = m.Index, m.Term
	}
}

func (wk *walker) entry(f *frame) {
	e, ok := parseEntry(f.data, f.dataLen, f.cut)
	if !ok {
		wk.content(BadContent, f)
		return
	}
	l := wk.log
	if e.term < wk.term {
		wk.content(TermBack, f)
		return
	}
	switch {
	case e.index > wk.index+1:
		if wk.pending == 0 {
			wk.damage(Damage{Kind: IndexGap, Segment: wk.info.Name, Offset: f.off, End: f.off,
				Before: wk.index, After: e.index, Resumed: true})
		}
	case e.index <= wk.index && l.Entries > 0:
		l.Replaced += int64(wk.index - e.index + 1)
		wk.replace(e.index)
	}
	wk.seen(e.index)
	wk.index = e.index
	l.Entries++
	wk.info.Entries++
	if wk.fresh {
		l.Unverified++
	}
	if l.FirstIndex == 0 || e.index < l.FirstIndex {
		l.FirstIndex = e.index
	}
	if wk.info.FirstIndex == 0 {
		wk.info.FirstIndex = e.index
	}
	wk.info.LastIndex = e.index
	wk.span(e)
	wk.term = e.term
	wk.request(e, f)
}

// seen gives the damage before it its After.
func (wk *walker) seen(index uint64) {
	if wk.pending > 0 {
		wk.log.Damage[wk.pending-1].After = index
		wk.pending = 0
	}
}

// span counts the entry for its term.
func (wk *walker) span(e rawEntry) {
	t := &wk.log.Terms
	if n := len(t.Items); n > 0 && t.Items[n-1].Term == e.term {
		t.Items[n-1].Entries++
		return
	}
	t.add(TermSpan{Term: e.term, FirstIndex: e.index, Entries: 1})
}

// request counts what the entry asks for.
func (wk *walker) request(e rawEntry, f *frame) {
	switch e.typ {
	case entryNormal:
		kind := wk.tally.request(e.data, f.cut, e.index)
		wk.tally.kind(kind, e.dataLen)
	case entryConfChange:
		c, ok := parseConfChange(e.data)
		if !ok || len(e.data) == 0 {
			wk.content(BadContent, f)
			return
		}
		wk.conf(c, e, f)
		wk.tally.kind(Conf, e.dataLen)
	case entryConfChangeV2:
		// An empty one would leave a joint configuration; etcd never makes one.
		list, ok := parseConfChangeV2(e.data)
		if !ok || len(list) == 0 {
			wk.content(BadContent, f)
			return
		}
		for _, c := range list {
			wk.conf(c, e, f)
		}
		wk.tally.kind(ConfV2, e.dataLen)
	}
}

func (wk *walker) conf(c ConfChange, e rawEntry, f *frame) {
	c.Index, c.Term = e.index, e.term
	c.Segment, c.Offset = wk.info.Name, f.off
	c.Unverified = wk.fresh
	l := &wk.log.ConfChanges
	l.add(c)
	if len(wk.confStack) >= 4*maxEvents {
		wk.confStack = wk.confStack[:copy(wk.confStack, wk.confStack[2*maxEvents:])]
	}
	wk.confStack = append(wk.confStack, l.Dropped+len(l.Items)-1)
}

// replace marks conf changes at index and above as overwritten.
func (wk *walker) replace(index uint64) {
	l := &wk.log.ConfChanges
	for n := len(wk.confStack); n > 0; n-- {
		i := wk.confStack[n-1] - l.Dropped
		if i >= 0 {
			if l.Items[i].Index < index {
				break
			}
			l.Items[i].Replaced = true
		}
		wk.confStack = wk.confStack[:n-1]
	}
}
