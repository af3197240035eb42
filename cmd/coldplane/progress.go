package main

import (
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// A progress is one live line on stderr. It shows nothing unless stderr is a
// terminal and -q is not given; it makes up no time that is left.
type progress struct {
	mu    sync.Mutex
	e     *env
	on    bool
	bar   *progressbar.ProgressBar
	total int
	n     int // inputs begun
}

func newProgress(e *env, g *globals) *progress {
	return &progress{e: e, on: e.errTTY && !g.quiet && e.getenv("TERM") != "dumb"}
}

// start begins a line; total is -1 when it is not known.
func (p *progress) start(total int, what string) {
	p.total = total
	p.bar = progressbar.NewOptions(total,
		progressbar.OptionSetWriter(p.e.err), progressbar.OptionSetDescription(what), progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(true), progressbar.OptionShowCount(), progressbar.OptionSetRenderBlankState(true),
		// No ticker of the library's own: it would write beside us.
		progressbar.OptionSpinnerType(14), progressbar.OptionSetSpinnerChangeInterval(0),
	)
}

// input is told of each input before it is read.
func (p *progress) input(path string) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		p.start(-1, "reading "+short(path))
	}
	p.n++
	p.bar.Describe("reading " + short(path))
	_ = p.bar.Set(p.n)
}

// question is told after each question.
func (p *progress) question(done, total int) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total != total {
		p.clear()
		p.start(total, "asking the rules")
	}
	if int64(done) > int64(p.bar.State().CurrentNum) {
		_ = p.bar.Set(done)
	}
}

// step shows work whose length is not known.
func (p *progress) step(what string) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.start(-1, what)
	_ = p.bar.RenderBlank()
}

func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

// done takes the line away; it may be called twice.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// short is the end of a path, visible and at most 40 columns.
func short(path string) string {
	s := strings.TrimSpace(visible(filepath.Base(path)))
	if r := []rune(s); len(r) > 40 {
		s = string(r[:39]) + "…"
	}
	return s
}
