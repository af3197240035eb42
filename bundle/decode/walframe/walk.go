package walframe

// maxDamage is how many damaged places are described; the rest is counted.
const maxDamage = 256

// Walk reads the segments of one write-ahead log, in the order of their
// sequence numbers whatever the order given. It never fails: what could not be
// read is in the Log's Damage. It reads every byte once, searched stretches a
// few times, and keeps one record of at most a few MiB in memory.
func Walk(segments []Segment) *Log {
	segs, odd := order(segments)
	l := &Log{OddNames: odd}
	wk := &walker{log: l, tally: newTally(l)}
	for i, s := range segs {
		l.Segments = append(l.Segments, SegmentInfo{Name: s.Name, Seq: s.seq, Index: s.index, Size: s.Size})
		wk.info = &l.Segments[i]
		wk.last = i == len(segs)-1
		if i > 0 {
			prev := segs[i-1]
			if s.seq == prev.seq {
				wk.damage(Damage{Kind: SequenceTwice, Segment: s.Name})
				continue
			}
			if s.seq > prev.seq+1 {
				wk.chainKnown = false
				wk.open(Damage{Kind: SequenceGap, Segment: s.Name, Before: wk.index})
			}
		} else if s.index > 0 {
			wk.index = s.index - 1
		}
		wk.segment(s)
	}
	wk.finish()
	return l
}

// walker carries what goes on from record to record and segment to segment.
type walker struct {
	log   *Log
	tally *tally
	w     window
	probe window // for looking ahead while searching
	buf   []byte
	spare []byte // the record probe reads

	searchEnd int64 // value of probe.read at which searching in this segment ends

	info *SegmentInfo
	last bool // info is the newest segment

	chain      uint32
	chainKnown bool

	broken  int  // index into log.Damage + 1 of the damage being crossed, 0 if none
	pending int  // same, of the damage whose After is still to be seen
	fresh   bool // the next record is the first one after a searched stretch: nothing checks its bytes

	index     uint64 // of the last entry or mark
	term      uint64
	confStack []int // serial numbers of conf changes that still stand, by rising index
}

// segment walks one file.
func (wk *walker) segment(s placed) {
	wk.w.reset(s.R, s.Size)
	wk.searchEnd = wk.probe.read + searchFactor*s.Size + 16*windowBytes
	wk.fresh = false
	off, n := int64(0), 0
	for {
		if off == s.Size {
			wk.end(EndExact, off)
			break
		}
		if s.Size-off < frameHeader {
			wk.shortTail(off)
			break
		}
		f, buf, fault := readFrame(&wk.w, off, wk.chain, wk.buf)
		wk.buf = buf
		if fault == faultNone {
			if stop := wk.frame(&f, n); stop {
				break
			}
			off = f.end
			n++
			continue
		}
		next, ok := wk.fault(&f, fault)
		if !ok {
			break
		}
		off = next
	}
	if n == 0 {
		wk.damage(Damage{Kind: NoHead, Segment: s.Name, End: s.Size, Before: wk.index})
	}
}

// frame takes one frame whose bytes are a record; n is how many came before it
// in this segment. It returns true when the segment ends with it.
func (wk *walker) frame(f *frame, n int) (stop bool) {
	wk.info.Written = f.end
	if f.pad != padGood {
		wk.damage(Damage{Kind: BadPadding, Segment: wk.info.Name, Offset: f.off, End: f.end, Before: wk.index})
		if f.pad == padMisread {
			wk.log.Start = StartRefuses
		}
	}
	if n == 0 && f.typ != typeCRC && !wk.fresh {
		wk.damage(Damage{Kind: NoHead, Segment: wk.info.Name, Offset: f.off, End: f.end, Before: wk.index})
		wk.chainKnown = false
	}
	if f.typ == typeCRC {
		if wk.chainKnown && !wk.fresh && f.crc != wk.chain {
			wk.cross(BadChain, f)
		} else {
			wk.good(f)
		}
		wk.chain, wk.chainKnown, wk.fresh = f.crc, true, false
		wk.info.Records++
		return false
	}
	fits := f.sum == f.crc
	if wk.fresh || !wk.chainKnown {
		fits = true // nothing to compare with; it is marked unverified
		wk.fresh = true
	}
	wk.chain, wk.chainKnown = f.crc, true
	if !fits {
		return wk.mismatch(f)
	}
	wk.info.Records++
	wk.good(f)
	wk.record(f)
	wk.fresh = false
	return false
}

// mismatch handles a record whose checksum does not fit.
func (wk *walker) mismatch(f *frame) (stop bool) {
	kind := BadChecksum
	if wk.last && f.zeroed {
		if nz, err := wk.w.firstNonZero(f.end, wk.w.size); err == nil && nz < 0 {
			wk.torn(f.off)
			return true
		}
		kind = ZeroSector
	}
	wk.cross(kind, f)
	wk.log.Damaged++
	wk.info.Records++
	// The record's place in the log can still be believed when it goes on
	// exactly where the one before it ended.
	if f.typ == typeEntry {
		if e, ok := parseEntry(f.data, f.dataLen, f.cut); ok && e.index == wk.index+1 && e.term >= wk.term {
			wk.index, wk.term = e.index, e.term
		}
	}
	return false
}

// good closes the damage being crossed: from here on records can be read.
func (wk *walker) good(f *frame) {
	if wk.broken > 0 {
		d := &wk.log.Damage[wk.broken-1]
		d.End, d.Resumed = f.off, true
		wk.broken = 0
	}
}

// cross notes a damaged record that can be told apart from its neighbours.
// Neighbours that are damaged too belong to the same break.
func (wk *walker) cross(kind DamageKind, f *frame) {
	if wk.broken == 0 {
		wk.open(Damage{Kind: kind, Segment: wk.info.Name, Offset: f.off, Before: wk.index})
	}
	if wk.broken > 0 {
		d := &wk.log.Damage[wk.broken-1]
		d.End = f.end
		d.Records++
	}
}

// fault handles a place where there is no record and says where to go on.
func (wk *walker) fault(f *frame, fault frameFault) (next int64, ok bool) {
	size := wk.w.size
	d := Damage{Segment: wk.info.Name, Offset: f.off, End: size, Before: wk.index}
	from := f.off + frameHeader
	switch fault {
	case faultZero:
		nz, err := wk.w.firstNonZero(from, size)
		if err != nil {
			d.Kind = Unreadable
			wk.stop(d)
			return 0, false
		}
		if nz < 0 {
			wk.end(EndPreallocated, f.off)
			return 0, false
		}
		d.Kind = ZeroGap
		from = nz &^ 7
	case faultLength:
		d.Kind = BadLength
	case faultCut:
		d.Kind = CutShort
		wk.stop(d)
		return 0, false
	case faultRecord:
		if wk.last && f.zeroed {
			if nz, err := wk.w.firstNonZero(f.end, size); err == nil && nz < 0 {
				wk.torn(f.off)
				return 0, false
			}
		}
		d.Kind = BadRecord
	default:
		d.Kind = Unreadable
		wk.stop(d)
		return 0, false
	}
	if wk.broken == 0 {
		wk.open(d)
	}
	next, ok = wk.resync(from)
	if !ok {
		if wk.broken > 0 {
			wk.log.Damage[wk.broken-1].End = size
		}
		wk.info.End = EndDamaged
		wk.lost()
		return 0, false
	}
	wk.fresh = true
	return next, true
}

// shortTail judges fewer bytes than a length field at the end of a file.
func (wk *walker) shortTail(off int64) {
	nz, err := wk.w.firstNonZero(off, wk.w.size)
	if err == nil && nz < 0 {
		wk.end(EndPreallocated, off)
		return
	}
	wk.stop(Damage{Kind: CutShort, Segment: wk.info.Name, Offset: off, End: wk.w.size, Before: wk.index})
}

func (wk *walker) torn(off int64) {
	wk.log.Torn = &Torn{Segment: wk.info.Name, Offset: off}
	wk.end(EndTorn, off)
}

// end notes where the written part of a segment ends.
func (wk *walker) end(e End, off int64) {
	wk.info.End, wk.info.Written = e, off
	wk.lost()
}

// stop notes damage after which nothing of the segment is read.
func (wk *walker) stop(d Damage) {
	if wk.broken == 0 {
		wk.open(d)
	} else {
		wk.log.Damage[wk.broken-1].End = d.End
	}
	wk.info.End = EndDamaged
	wk.lost()
}

// lost forgets the damage being crossed at the end of a segment: what follows
// is another file. Its After stays open.
func (wk *walker) lost() { wk.broken = 0 }

// open adds a damage that the next good record closes.
func (wk *walker) open(d Damage) {
	if i := wk.damage(d); i > 0 {
		wk.broken, wk.pending = i, i
	}
}

// damage adds d and returns its place + 1, 0 when it was only counted.
func (wk *walker) damage(d Damage) int {
	if d.Kind != BadPadding {
		wk.log.Breaks++
	}
	if !wk.log.Identified {
		wk.log.Start = StartRefuses // what is cut off holds the member's id, and raft takes none for 0
	}
	if len(wk.log.Damage) >= maxDamage {
		wk.log.DamageDropped++
		return 0
	}
	wk.log.Damage = append(wk.log.Damage, d)
	return len(wk.log.Damage)
}

// finish closes the log: what only the whole of it can tell.
func (wk *walker) finish() {
	l := wk.log
	wk.tally.finish()
	l.LastIndex, l.LastTerm = wk.index, wk.term
	if n := len(l.Segments); n > 0 {
		tail := &l.Segments[n-1]
		l.Tail = tail.Name
		l.Trimmed = tail.End == EndExact
		if l.State.Commit > l.LastIndex {
			wk.damage(Damage{Kind: CommitBeyond, Segment: tail.Name, Offset: tail.Written, End: tail.Size,
				Before: l.LastIndex, After: l.State.Commit + 1})
		}
	}
	l.Start = l.start()
}

// start tells what etcd (3.4 to 3.7) would do with the log: it reads the
// segments through one decoder, takes a zero length for the end of a file, and
// repairs only an unfinished record of the newest one. Without the first
// record, the member's identity, it stops (raft: "cannot use none as id").
func (l *Log) start() Start {
	if len(l.Segments) == 0 {
		return StartNone
	}
	if l.Start == StartRefuses {
		return StartRefuses
	}
	for _, d := range l.Damage {
		switch d.Kind {
		case BadPadding, CommitBeyond, TermBack, BadContent:
			continue
		case ZeroGap, ZeroSector, CutShort, BadLength, NoHead:
			if d.Segment == l.Tail {
				return StartDrops
			}
		}
		return StartRefuses
	}
	if !l.Identified { // an id of 0
		return StartRefuses
	}
	if l.Torn != nil {
		return StartRepairs
	}
	return StartOpens
}
