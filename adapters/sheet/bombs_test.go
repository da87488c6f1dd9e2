package sheet_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"

	"dropbell/adapters/sheet"
	"dropbell/domain/job"
	"dropbell/musttest"
)

// peakMiB is the most memory of a process that reads one workbook made to harm. It includes the
// memory of the program itself.
const peakMiB = 150

// A bomb is written as the members of a workbook.
type bomb struct {
	t *testing.T
	*zip.Writer
}

func (b bomb) add(name, content string) {
	w, err := b.Create(name)
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// repeat adds a member that consists of head and of piece, repeated times times, without packing
// all of it. piece has more bytes than the packer's window, so each repetition has the same
// packed form. The directory states the size of the member, or says if says is not 0.
func (b bomb) repeat(name, head, piece string, times int, says uint64) {
	if len(piece) < 64<<10 {
		piece = strings.Repeat(piece, 64<<10/len(piece)+1)
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.DefaultCompression)
	if err != nil {
		b.t.Fatal(err)
	}
	sum, size := crc32.NewIEEE(), len(head)
	write := func(s string) {
		_, _ = io.WriteString(w, s)
		_ = w.Flush()
	}
	write(head)
	write(piece)
	before := packed.Len()
	write(piece)
	again := bytes.Clone(packed.Bytes()[before:])
	_, _ = io.WriteString(sum, head)
	for range times {
		_, _ = io.WriteString(sum, piece)
	}
	size += times * len(piece)
	packed.Write(bytes.Repeat(again, times-2))
	packed.WriteString("\x01\x00\x00\xff\xff") // the last block, which is empty
	if says == 0 {
		says = uint64(size)
	}
	raw, err := b.CreateRaw(&zip.FileHeader{Name: name, Method: zip.Deflate, CRC32: sum.Sum32(), CompressedSize64: uint64(packed.Len()), UncompressedSize64: says})
	if err == nil {
		_, err = raw.Write(packed.Bytes())
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// noisy returns a text of 128 KiB that repeats part with random letters. The letters keep the
// text from being packed more than a hundredfold.
func noisy(part string) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < 128<<10 {
		fmt.Fprintf(&b, part, strconv.FormatUint(random.Uint64(), 36))
	}
	return b.String()
}

const (
	bookXML = `<workbook xmlns:r="r"><sheets><sheet name="One" sheetId="1" r:id="rId1"/></sheets></workbook>`
	relsXML = `<Relationships><Relationship Id="rId1" Type="x/worksheet" Target="worksheets/sheet1.xml"/>` +
		`<Relationship Id="rId2" Type="x/sharedStrings" Target="sharedStrings.xml"/></Relationships>`
)

func (b bomb) book() {
	b.add("xl/workbook.xml", bookXML)
	b.add("xl/_rels/workbook.xml.rels", relsXML)
}

// cell is a sheet of one cell with the shared text of that number.
func (b bomb) cell(number string) {
	b.add("xl/worksheets/sheet1.xml", `<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>`+number+`</v></c></row></sheetData></worksheet>`)
}

// bombs are workbooks of some MiB, each with the expected result of reading it. Unpacked or held
// whole, they would take hundreds of MiB or some GiB.
var bombs = map[string]struct {
	make func(bomb)
	want string
}{
	"a member of a gigabyte": {func(b bomb) { b.book(); b.cell("0"); b.repeat("xl/media/image1.bin", "", "\x00", 1<<14, 0) }, "refused"},
	"a sheet of a gigabyte":  {func(b bomb) { b.book(); b.repeat("xl/worksheets/sheet1.xml", "", "\x00", 1<<14, 0) }, "refused"},
	"a sheet that is larger than it says": {func(b bomb) {
		b.book()
		b.repeat("xl/worksheets/sheet1.xml", "<worksheet><sheetData>", noisy("<row><c><v>%s</v></c></row>"), 400, 60_000)
	}, "refused"},
	"a book that is larger than it says": {func(b bomb) {
		b.repeat("xl/workbook.xml", bookXML, " ", 1<<13, 60_000)
		b.add("xl/_rels/workbook.xml.rels", relsXML)
	}, "refused"},
	"many members below the limit": {func(b bomb) {
		b.book()
		piece := noisy(strings.Repeat("x", 700) + "%s")
		for i := range 40 {
			b.repeat(fmt.Sprintf("xl/media/%d", i), "", piece, 64, 0)
		}
	}, "refused"},
	"texts without number": {func(b bomb) {
		b.book()
		b.cell("999999999")
		// Ten million texts, whose headers alone would take more than peakMiB.
		b.repeat("xl/sharedStrings.xml", "<sst>", noisy(strings.Repeat("<si/>", 140)+"%s"), 500, 0)
	}, "refused"},
	"one endless text": {func(b bomb) {
		b.book()
		b.cell("0")
		b.repeat("xl/sharedStrings.xml", "<sst><si><t>", noisy(strings.Repeat("x", 700)+"%s"), 1600, 0)
	}, "refused"},
	"endless attributes": {func(b bomb) {
		b.book()
		b.repeat("xl/worksheets/sheet1.xml", "<worksheet ", noisy("a%s=\""+strings.Repeat("y", 500)+"\" "), 1600, 0)
	}, "refused"},
	"elements in elements": {func(b bomb) {
		b.book()
		b.repeat("xl/worksheets/sheet1.xml", "", noisy(strings.Repeat("<a>", 240)+"<b%s>"), 1600, 0)
	}, "refused"},
	"a row of a million cells": {func(b bomb) {
		b.book()
		b.add("xl/worksheets/sheet1.xml", "<worksheet><sheetData><row>"+strings.Repeat("<c><v>1</v></c><c><is><t>yes</t></is></c>", 1<<17)+"</row></sheetData></worksheet>")
	}, "refused"},
	"a row of a million cells, below the ratio": {func(b bomb) {
		b.book()
		b.add("xl/worksheets/sheet1.xml", "<worksheet><sheetData><row>"+strings.Repeat(noisy("<c><v>%s</v></c>"), 40)+"</row></sheetData></worksheet>")
	}, "1!"},
	"sheets without number": {func(b bomb) {
		b.repeat("xl/workbook.xml", bookXML, noisy("<sheet name=\"%s\" r:id=\"rId1\"/>"), 100, 0)
		b.add("xl/_rels/workbook.xml.rels", relsXML)
		b.add("xl/worksheets/sheet1.xml", "<worksheet/>")
	}, "refused"},
	"a directory without end": {func(b bomb) {
		b.book()
		for i := range 100_000 {
			if _, err := b.CreateHeader(&zip.FileHeader{Name: strconv.Itoa(i), Method: zip.Store}); err != nil {
				b.t.Fatal(err)
			}
		}
	}, "refused"},
	"a workbook in a workbook": {func(b bomb) {
		var inner bytes.Buffer
		z := zip.NewWriter(&inner)
		bomb{b.t, z}.repeat("xl/media/image1.bin", "", "\x00", 1<<14, 0)
		_ = z.Close()
		b.book()
		b.cell("0")
		b.add("xl/sharedStrings.xml", "<sst><si><t>fine</t></si></sst>")
		w, err := b.CreateHeader(&zip.FileHeader{Name: "xl/embeddings/inner.xlsx", Method: zip.Store})
		if err == nil {
			_, err = w.Write(inner.Bytes())
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}, "1:fine"},
}

// TestBombs reads each bomb in a process of its own and checks the largest memory that the
// process held.
func TestBombs(t *testing.T) {
	for name, b := range bombs {
		t.Run(name, func(t *testing.T) {

			path := filepath.Join(t.TempDir(), "bomb.xlsx")
			file, err := os.Create(path)
			musttest.OK(t, err)
			z := zip.NewWriter(file)
			b.make(bomb{t, z})
			musttest.OK(t, errors.Join(z.Close(), file.Close()))
			if info, _ := os.Stat(path); info.Size() > 32<<20 {
				t.Fatalf("the bomb has %d bytes: it would be refused for its size", info.Size())
			}
			read := exec.Command(os.Args[0], "-test.run=^TestReadBomb$", "-test.v")
			read.Env = append(os.Environ(), "SHEET_TEST_BOMB="+path)
			out, err := read.CombinedOutput()
			m := regexp.MustCompile(`peak (\d+) MiB, said (.*)`).FindStringSubmatch(string(out))
			if err != nil || m == nil {
				t.Fatalf("%v\n%.2000s", err, out)
			}
			if peak, _ := strconv.Atoi(m[1]); peak >= peakMiB {
				t.Errorf("the process took %d MiB, want less than %d", peak, peakMiB)
			}
			if m[2] != b.want {
				t.Errorf("said %q, want %q", m[2], b.want)
			}
		})
	}
}

// TestReadBomb is the process that reads a bomb, of TestBombs.
func TestReadBomb(t *testing.T) {
	path := os.Getenv("SHEET_TEST_BOMB")
	if path == "" {
		t.Skip("TestBombs starts this")
	}
	file, err := os.Open(path)
	musttest.OK(t, err)
	defer file.Close()
	var said []string
	r, err := sheet.Resume(file, sheet.Limits{}, job.Reading{}, nil)
	if err == nil {
		said, err = all(t, r)
	}
	if err != nil && !errors.Is(err, sheet.ErrUnreadable) {
		t.Fatal(err)
	}
	if err != nil {
		said = append(said, "refused")
	}
	// The memory that the program took from the system, including memory that it gave back, only
	// grows. The race detector's own memory is not counted.
	peak := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(peak)
	fmt.Printf("peak %d MiB, said %s\n", peak[0].Value.Uint64()>>20, said[len(said)-1])
}
