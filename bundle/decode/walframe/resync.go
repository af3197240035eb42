package walframe

const (
	probeHead = 64 // bytes of a candidate that are looked at
	// searchFactor bounds the bytes read to confirm candidates in one segment, as
	// a multiple of its size: data made to look like records everywhere must not
	// make the search slow. Beyond it the rest of the segment is given up.
	searchFactor = 4
)

// resync searches for the next place at or after from where records can be
// read. Frames lie at multiples of eight; a candidate counts when the record
// after it continues its checksum, or when it is the last one and its content
// is what its type says.
func (wk *walker) resync(from int64) (int64, bool) {
	wk.probe.reset(wk.w.r, wk.w.size)
	for off := (from + 7) &^ 7; off+frameHeader <= wk.w.size; off += 8 {
		h, err := wk.w.at(off, frameHeader)
		if err != nil {
			return 0, false
		}
		l := le64(h)
		if l == 0 {
			continue
		}
		length, pad, state := splitLength(l)
		body := off + frameHeader
		if state == padMisread || length < 4 || length > wk.w.size-body-pad {
			continue
		}
		head, err := wk.w.at(body, int(min(probeHead, wk.w.size-body)))
		if err != nil {
			return 0, false
		}
		var f frame
		if !parseRecord(head[:min(int64(len(head)), length)], length, &f) || !f.typ.known() {
			continue
		}
		if wk.probe.read > wk.searchEnd {
			return 0, false
		}
		if wk.confirm(off, body+length+pad, f.crc) {
			return off, true
		}
	}
	return 0, false
}

// confirm looks at what follows a candidate.
func (wk *walker) confirm(off, end int64, crc uint32) bool {
	size := wk.w.size
	if end+frameHeader <= size {
		next, buf, fault := readFrame(&wk.probe, end, crc, wk.spare)
		wk.spare = buf
		wk.probe.read += next.dataLen
		switch fault {
		case faultNone:
			if next.typ == typeCRC {
				return next.crc == crc
			}
			return next.sum == next.crc
		case faultZero:
		default:
			return false
		}
	}
	f, buf, fault := readFrame(&wk.probe, off, 0, wk.spare)
	wk.spare = buf
	wk.probe.read += f.dataLen
	return fault == faultNone && plausible(&f)
}

// plausible tells whether a record's content is what its type says.
func plausible(f *frame) (ok bool) {
	switch f.typ {
	case typeMetadata:
		_, ok = parseIdentity(f.data)
	case typeEntry:
		_, ok = parseEntry(f.data, f.dataLen, f.cut)
	case typeState:
		_, ok = parseHardState(f.data)
	case typeSnapshot:
		_, ok = parseSnapshotMark(f.data)
	case typeCRC:
		ok = f.dataLen == 0
	}
	return ok
}
