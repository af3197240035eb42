# coldplane. `make demo` and `make test` are all a fresh machine with Go needs.

GO      ?= go
BIN     := bin/coldplane
VERSION ?=
LDFLAGS := -s -w $(if $(VERSION),-X main.version=$(VERSION))
FUZZTIME ?= 20s
AS_OF   := 2026-05-12T09:30:00Z

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: tables oracle build demo test race lint fuzz bench golden docs man picture size release damage sample clean reproducible

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/coldplane

# Analyze the shipped three-node incident: the report on the terminal, the HTML beside it.
demo: build
	@mkdir -p demo
	$(BIN) analyze testdata/incident --as-of $(AS_OF) --fail-on none --report html=demo/report.html
	@echo
	@echo "HTML report: demo/report.html"

test:
	$(GO) test -timeout 20m ./...

# The race detector; RACE narrows it to some packages.
RACE ?= ./...
race:
	$(GO) test -race -timeout 30m $(RACE)

lint:
	@bad=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$bad" || { echo "not gofmt-clean: $$bad"; exit 1; }
	$(GO) vet ./...
	@for os in darwin windows; do GOOS=$$os CGO_ENABLED=0 $(GO) vet ./cmd/coldplane || exit 1; done
	$(GO) run $(STATICCHECK) ./...
	$(GO) mod verify
	$(GO) mod tidy -diff

# Every fuzz target for FUZZTIME each. A target fails when it wrote a crasher
# below testdata/fuzz; a worker cut off by the clock is none.
fuzz:
	@$(GO) list -f '{{.ImportPath}} {{.Dir}}' ./... | while read pkg dir; do \
	  for t in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go 2>/dev/null | sed 's/func //'); do \
	    echo "$$pkg $$t"; \
	    $(GO) test $$pkg -run '^$$' -fuzz "^$$t\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x || { \
	      test -z "$$(git status --porcelain -- "$$dir/testdata/fuzz")" || exit 1; \
	      echo "$$t: ended without a crasher"; }; \
	  done; done

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# The whole corpora of damaged stores and logs; go test runs a subset.
damage:
	COLDPLANE_DAMAGE=full $(GO) test -run 'Damage' -timeout 60m ./bundle/decode/... ./analyze/...

golden:
	UPDATE=1 $(GO) test ./cmd/... ./report/... ./rules/...

# Pages generated from the code; CI fails when they are stale.
docs:
	COLDPLANE_DOCS=write $(GO) test -count=1 -run '^TestDocs$$' ./cmd/coldplane

# Man pages, into dist/man.
man:
	@mkdir -p dist/man
	COLDPLANE_MAN=$(CURDIR)/dist/man $(GO) test -count=1 -run '^TestDocs$$' ./cmd/coldplane

# The picture in the README: the demo's report in headless Chromium.
picture: demo
	scripts/picture demo/report.html docs/report.png

# The demo incident, made anew by real etcd servers (needs root for the addresses).
sample:
	cd internal/mksample && $(GO) run .

size: build
	@ls -l $(BIN) | awk '{print $$5, "bytes (budget 45000000)"; exit ($$5 > 45000000)}'

release:
	@rm -rf dist && mkdir -p dist
	@for t in linux/amd64 linux/arm64 darwin/arm64 windows/amd64; do \
	  os=$${t%/*}; arch=$${t#*/}; ext=; [ $$os = windows ] && ext=.exe; \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o dist/coldplane-$$os-$$arch$$ext ./cmd/coldplane || exit 1; \
	done
	@for b in dist/coldplane-*; do $(GO) run ./internal/mksbom $$b > $$b.cdx.json || exit 1; done
	@cd dist && sha256sum coldplane-* > SHA256SUMS && cat SHA256SUMS

# Two builds of the release binary, from two directories, must be the same bytes.
reproducible:
	@a=$$(mktemp -d) && b=$$(mktemp -d) && trap "rm -rf $$a $$b" EXIT && \
	for d in $$a $$b; do git archive HEAD | tar -x -C $$d && (cd $$d && CGO_ENABLED=0 GOOS=linux GOARCH=amd64 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o out ./cmd/coldplane) || exit 1; done && \
	sha256sum $$a/out $$b/out && cmp $$a/out $$b/out && echo "reproducible"

clean:
	rm -rf bin demo dist

# The tables of what each release accepts, from the sources (needs a module proxy).
tables:
	$(GO) run ./internal/tablegen -out analyze/releases/data

# What the real kubeadm writes, for the tests of its rendering (needs a module
# proxy, root and several minutes per version).
ORACLE_VERSIONS ?= v1.28.15 v1.31.14 v1.34.4 v1.36.3 v1.37.2
oracle:
	mkdir -p bin/oracle
	cd oracle && $(GO) run . -out ../analyze/kubeadm/render/testdata/oracle -work ../bin/oracle $(ORACLE_VERSIONS)
