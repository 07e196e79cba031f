// Sequences of snapshots, and what dd-trace-go's fastdelta makes of them:
//
//	go_delta_peer make SEED COUNT > sequences
//	go_delta_peer compare SEQUENCES OURS
//
// Both files are blocks: a byte for the kind, four for the length, the bytes. 'N' begins a sequence: names of the
// sample types that grow, or "baseline" before them; 'S' is a snapshot. The other engine answers each of these with
// 'D', its difference, maybe none, or 'E', a reason. tests/live/test_go_delta.py builds it beside fastdelta, which is
// internal to its module.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/DataDog/dd-trace-go/v2/profiler/internal/fastdelta"
	"github.com/DataDog/dd-trace-go/v2/profiler/internal/pprofutils"
	"github.com/google/pprof/profile"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func put(out io.Writer, kind byte, data []byte) {
	head := binary.LittleEndian.AppendUint32([]byte{kind}, uint32(len(data)))
	_, err := out.Write(append(head, data...))
	check(err)
}

func get(in io.Reader) (byte, []byte, bool) {
	var head [5]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, nil, false
	}
	data := make([]byte, binary.LittleEndian.Uint32(head[1:]))
	_, err := io.ReadFull(in, data)
	check(err)
	return head[0], data, true
}

// ---- Snapshots by lot

type message struct{ bytes.Buffer }

func (m *message) varint(v uint64) { m.Write(binary.AppendUvarint(nil, v)) }

func (m *message) number(field int, v int64) {
	if v != 0 {
		m.varint(uint64(field << 3))
		m.varint(uint64(v))
	}
}

func (m *message) data(field int, data []byte) {
	m.varint(uint64(field<<3 | 2))
	m.varint(uint64(len(data)))
	m.Write(data)
}

type label struct {
	key, text, unit string
	number          int64
}

type stack struct {
	addresses []uint64
	labels    []label
	values    []int64
}

type world struct {
	*rand.Rand
	isHeap bool
	stacks []*stack
	time   int64
}

func (w *world) chance(percent int) bool { return w.Intn(100) < percent }

func (w *world) columns() int {
	if w.isHeap {
		return 4
	}
	return 2
}

func (w *world) newStack() *stack {
	s := &stack{values: make([]int64, w.columns())}
	for n := w.Intn(8); n > 0; n-- {
		s.addresses = append(s.addresses, uint64(0x401000+w.Intn(30)*w.Intn(5)))
	}
	if w.isHeap {
		s.labels = append(s.labels, label{key: "bytes", number: int64(16 << w.Intn(4))})
	}
	for n := w.Intn(7) - 3; n > 0; n-- {
		l := label{key: string(rune('a' + w.Intn(3)))}
		if w.chance(50) {
			l.text = []string{"x", "y", "bytes", ""}[w.Intn(4)]
		} else {
			l.number, l.unit = int64(w.Intn(3)), []string{"", "ms"}[w.Intn(2)]
		}
		s.labels = append(s.labels, l)
	}
	return s
}

func (w *world) grow() {
	w.time += int64(w.Intn(1000000))
	for n := w.Intn(10); n > 0; n-- {
		w.stacks = append(w.stacks, w.newStack())
	}
	for _, s := range w.stacks {
		if w.chance(40) {
			continue
		}
		for i := range s.values {
			if i >= 2 {
				s.values[i] = int64(w.Intn(3)) * int64(w.Intn(100))
			} else if w.chance(2) {
				s.values[i] -= int64(w.Intn(50))
			} else {
				s.values[i] += int64(w.Intn(100000))
			}
		}
	}
}

// One way to write a profile: ids, order, packed or not.
type writer struct {
	*world
	texts            []string
	index            map[string]int64
	locations        map[uint64]uint64
	functions        map[string]uint64
	body             message
	shift            uint64
	isSpread, isGzip bool
}

func (w *writer) text(s string) int64 {
	if _, ok := w.index[s]; !ok {
		w.index[s] = int64(len(w.texts))
		w.texts = append(w.texts, s)
	}
	return w.index[s]
}

func (w *writer) function(name string) uint64 {
	if id, ok := w.functions[name]; ok {
		return id
	}
	id := uint64(len(w.functions)) + 1 + w.shift
	w.functions[name] = id
	var m message
	m.number(1, int64(id))
	m.number(2, w.text(name))
	m.number(3, w.text(name))
	m.number(4, w.text(name[:1]+".go"))
	m.number(5, int64(len(name)))
	w.body.data(5, m.Bytes())
	return id
}

func (w *writer) location(address uint64) uint64 {
	if id, ok := w.locations[address]; ok {
		return id
	}
	id := uint64(len(w.locations)) + 1 + w.shift*uint64(len(w.locations))
	w.locations[address] = id
	var m message
	m.number(1, int64(id))
	m.number(2, 1)
	m.number(3, int64(address))
	for i := uint64(0); i < address%3; i++ {
		var line message
		line.number(1, int64(w.function(fmt.Sprintf("f%d", (address+i)%17))))
		line.number(2, int64(address%100))
		m.data(4, line.Bytes())
	}
	w.body.data(4, m.Bytes())
	return id
}

func (w *writer) numbers(m *message, field int, values []uint64) {
	var packed message
	for _, v := range values {
		if w.isSpread {
			m.varint(uint64(field << 3))
			m.varint(v)
		}
		packed.varint(v)
	}
	if !w.isSpread {
		m.data(field, packed.Bytes())
	}
}

func (w *writer) sample(s *stack, values []int64, fault int) {
	var m message
	var ids, all []uint64
	for _, a := range s.addresses {
		ids = append(ids, w.location(a))
	}
	if fault == 1 {
		ids = append(ids, 99999)
	}
	for _, v := range values {
		all = append(all, uint64(v))
	}
	w.numbers(&m, 1, ids)
	w.numbers(&m, 2, all)
	for _, i := range w.Perm(len(s.labels)) {
		var l message
		l.number(1, w.text(s.labels[i].key))
		l.number(2, w.text(s.labels[i].text))
		l.number(3, s.labels[i].number)
		l.number(4, w.text(s.labels[i].unit))
		if fault == 2 {
			l.number(2, 99999)
		}
		m.data(3, l.Bytes())
	}
	w.body.data(2, m.Bytes())
}

func (w *writer) valueType(field int, name, unit string) {
	var m message
	m.number(1, w.text(name))
	m.number(2, w.text(unit))
	w.body.data(field, m.Bytes())
}

// The sums, in one sample or shared out among several.
func (w *writer) samples(fault int) {
	for _, i := range w.Perm(len(w.stacks)) {
		s := w.stacks[i]
		if w.chance(10) {
			continue
		}
		rest := append([]int64{}, s.values...)
		for w.chance(15) {
			part := make([]int64, len(rest))
			for c := range part {
				part[c] = int64(w.Intn(50)) - 10
				rest[c] -= part[c]
			}
			w.sample(s, part, 0)
		}
		w.sample(s, rest, fault)
		fault = 0
	}
}

func (w *writer) mapping(id int64) {
	var m message
	m.number(1, id)
	m.number(2, id<<32)
	m.number(3, id<<32+4096)
	m.number(5, w.text(fmt.Sprintf("/bin/app%d", id)))
	m.number(6, w.text("b1d"))
	m.number(7, id&1)
	w.body.data(3, m.Bytes())
}

func (w *world) snapshot(fault int) []byte {
	o := &writer{world: w, index: map[string]int64{}, locations: map[uint64]uint64{}, functions: map[string]uint64{}}
	o.shift, o.isSpread, o.isGzip = uint64(w.Intn(3)/2*w.Intn(9)), w.chance(30), w.chance(50)
	o.text("")
	if w.isHeap {
		o.valueType(1, "alloc_objects", "count")
		o.valueType(1, "alloc_space", "bytes")
		o.valueType(1, "inuse_objects", "count")
		o.valueType(1, "inuse_space", "bytes")
		o.valueType(11, "space", "bytes")
	} else {
		o.valueType(1, "contentions", "count")
		o.valueType(1, "delay", "nanoseconds")
		o.valueType(11, "contentions", "count")
	}
	o.samples(fault)
	o.mapping(1)
	o.mapping(2)
	o.body.number(9, 1700000000000000000+w.time)
	o.body.number(10, int64(w.Intn(2)*5))
	o.body.number(12, 524288)
	if w.chance(20) {
		o.body.number(7, o.text("drop.*"))
		o.body.number(8, o.text("keep.*"))
		o.body.number(13, o.text("first"))
		o.body.number(13, o.text("second"))
		o.body.number(14, o.text("delay"))
	}
	var texts, all message
	for _, s := range o.texts {
		texts.data(6, []byte(s))
	}
	if w.chance(30) {
		all.Write(texts.Bytes())
		all.Write(o.body.Bytes())
	} else {
		all.Write(o.body.Bytes())
		all.Write(texts.Bytes())
	}
	if fault == 3 {
		all.Truncate(all.Len() - 1)
	}
	if !o.isGzip {
		return all.Bytes()
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	_, err := z.Write(all.Bytes())
	check(err)
	check(z.Close())
	return packed.Bytes()
}

func makeAll(seed, count int, out io.Writer) {
	for i := 0; i < count; i++ {
		w := &world{Rand: rand.New(rand.NewSource(int64(seed*1000003 + i)))}
		w.isHeap = w.chance(60)
		names := "contentions delay"
		if w.isHeap {
			names = "alloc_objects alloc_space"
		}
		if w.chance(25) {
			names = "baseline " + names
		}
		put(out, 'N', []byte(names))
		for n := 2 + w.Intn(5); n > 0; n-- {
			w.grow()
			fault := 0
			if w.chance(3) && len(w.stacks) > 0 {
				fault = 1 + w.Intn(3)
			}
			put(out, 'S', w.snapshot(fault))
		}
	}
}

// ---- Both engines

var units = map[string]string{"alloc_objects": "count", "alloc_space": "bytes", "contentions": "count", "delay": "nanoseconds"}

func unpacked(data []byte) []byte {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	check(err)
	plain, err := io.ReadAll(z)
	check(err)
	return plain
}

// The string table, which says what is kept of it.
func textsOf(data []byte) (texts []string) {
	for len(data) > 0 {
		key, n := binary.Uvarint(data)
		value, m := binary.Uvarint(data[n:])
		data = data[n+m:]
		if key&7 == 2 {
			if key>>3 == 6 {
				texts = append(texts, string(data[:value]))
			}
			data = data[value:]
		}
	}
	return texts
}

func labelsOf(s *profile.Sample) string {
	var all []string
	for key, values := range s.Label {
		for _, v := range values {
			all = append(all, fmt.Sprintf("%s=%q", key, v))
		}
	}
	for key, values := range s.NumLabel {
		for i, v := range values {
			unit := ""
			if i < len(s.NumUnit[key]) {
				unit = s.NumUnit[key][i]
			}
			all = append(all, fmt.Sprintf("%s=%d%s", key, v, unit))
		}
	}
	sort.Strings(all)
	return strings.Join(all, " ")
}

// All of a profile as lines. Where growing is told, its columns are 0, and samples of nothing but 0 left out.
func lines(data []byte, growing map[string]bool) []string {
	plain := unpacked(data)
	p, err := profile.ParseData(plain)
	check(err)
	all := []string{}
	for _, s := range p.Sample {
		isZero := true
		for i, t := range p.SampleType {
			if growing[t.Type] {
				s.Value[i] = 0
			}
			isZero = isZero && s.Value[i] == 0
		}
		text := "sample"
		for _, l := range s.Location {
			text += fmt.Sprintf(" %x", l.Address)
		}
		if !isZero {
			all = append(all, fmt.Sprintf("%s [%s] %d", text, labelsOf(s), s.Value))
		}
	}
	sort.Strings(all)
	for _, t := range append(p.SampleType, p.PeriodType) {
		all = append(all, fmt.Sprintf("type %s/%s", t.Type, t.Unit))
	}
	all = append(all, fmt.Sprintf("time %d duration %d period %d", p.TimeNanos, p.DurationNanos, p.Period))
	all = append(all, fmt.Sprintf("%q %q %q %q", p.DropFrames, p.KeepFrames, p.Comments, p.DefaultSampleType))
	for _, m := range p.Mapping {
		all = append(all, fmt.Sprintf("mapping %d %x %x %x %s %s %v", m.ID, m.Start, m.Limit, m.Offset, m.File, m.BuildID, m.HasFunctions))
	}
	if growing == nil { // else what the samples lead to is another
		all = append(all, kept(p)...)
		all = append(all, fmt.Sprintf("texts %q", textsOf(plain)))
	}
	return all
}

func kept(p *profile.Profile) (all []string) {
	for _, l := range p.Location {
		text := fmt.Sprintf("location %d %x", l.ID, l.Address)
		if l.Mapping != nil {
			text += fmt.Sprintf(" of %d", l.Mapping.ID)
		}
		for _, line := range l.Line {
			text += fmt.Sprintf(" %d:%d", line.Function.ID, line.Line)
		}
		all = append(all, text)
	}
	for _, f := range p.Function {
		all = append(all, fmt.Sprintf("function %d %s %s %s %d", f.ID, f.Name, f.SystemName, f.Filename, f.StartLine))
	}
	return all
}

// The first line that only one of them has, or "".
func difference(ours, theirs []string) string {
	for i := 0; i < len(ours) || i < len(theirs); i++ {
		if i >= len(ours) || i >= len(theirs) || ours[i] != theirs[i] {
			return fmt.Sprintf("line %d of %d and %d\n  ours:   %s\n  theirs: %s", i, len(ours), len(theirs),
				strings.Join(ours[min(i, len(ours)):min(i+1, len(ours))], ""),
				strings.Join(theirs[min(i, len(theirs)):min(i+1, len(theirs))], ""))
		}
	}
	return ""
}

// A snapshot's place in the file, and what became of it.
func compareOne(theirs *fastdelta.DeltaComputer, snapshot, ours []byte, kind byte, growing map[string]bool) string {
	var out bytes.Buffer
	err := theirs.Delta(unpacked(snapshot), &out)
	isOurs := kind == 'D' && len(ours) > 0
	if (err == nil) != isOurs {
		return fmt.Sprintf("ours: %c %d %.80q, theirs: %v", kind, len(ours), ours, err)
	}
	if err != nil {
		refused++
		return ""
	}
	answered++
	want := lines(out.Bytes(), growing)
	samples += strings.Count(strings.Join(want, "\n"), "sample ")
	return difference(lines(ours, growing), want)
}

var answered, refused, samples int

func compare(sequences, ours io.Reader) {
	var theirs *fastdelta.DeltaComputer
	var growing map[string]bool
	count, step, different := 0, 0, 0
	for {
		kind, data, ok := get(sequences)
		if !ok {
			break
		}
		if kind == 'N' {
			var types []pprofutils.ValueType
			growing = nil
			for _, name := range strings.Fields(string(data)) {
				if name == "baseline" {
					growing = map[string]bool{}
					continue
				}
				types = append(types, pprofutils.ValueType{Type: name, Unit: units[name]})
				if growing != nil {
					growing[name] = true
				}
			}
			theirs, step = fastdelta.NewDeltaComputer(types...), 0
			count++
			continue
		}
		kind, answer, ok := get(ours)
		if !ok {
			fmt.Println("an answer is missing")
			os.Exit(1)
		}
		if text := compareOne(theirs, data, answer, kind, growing); text != "" {
			different++
			fmt.Printf("sequence %d, snapshot %d: %s\n", count-1, step, text)
		}
		growing = nil
		step++
	}
	fmt.Printf("%d sequences, %d differences equal, %d refused by both, %d samples, %d snapshots differ\n", count,
		answered-different, refused, samples, different)
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	if os.Args[1] == "make" {
		seed, _ := strconv.Atoi(os.Args[2])
		count, _ := strconv.Atoi(os.Args[3])
		makeAll(seed, count, out)
		return
	}
	sequences, err := os.Open(os.Args[2])
	check(err)
	ours, err := os.Open(os.Args[3])
	check(err)
	compare(bufio.NewReader(sequences), bufio.NewReader(ours))
}
