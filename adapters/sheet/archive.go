package sheet

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
)

const (
	// maxMembers is how many files a workbook may consist of.
	maxMembers = 2_000
	// maxMember is the largest unpacked size of a member that is neither a sheet nor the table
	// of shared strings, in bytes.
	maxMember = 16 << 20
	// maxRatio is the largest ratio of unpacked to packed size, for members that are larger than
	// smallMember.
	maxRatio    = 100
	smallMember = 64 << 10
	// directoryEntry begins each entry of an archive's directory.
	directoryEntry = "PK\x01\x02"
)

// archive is a workbook whose directory was checked. A member is unpacked only when it is read.
type archive map[string]*zip.File // by path in small letters

// errBroken is the refusal of a workbook that is damaged, or made to harm.
func errBroken() error {
	return because(ErrUnreadable, "rule.file_workbook", "the file is not a readable XLSX workbook, or is too large when unpacked; save it as CSV")
}

// openArchive reads the directory and refuses an archive that would cost too much to unpack. The
// sizes in the directory may be wrong, so [archive.open] enforces them when a member is read.
func openArchive(file io.ReaderAt, size int64, l Limits) (archive, error) {
	// The entries are counted first. The directory's own count may be wrong, and reading an
	// entry takes ten times the entry's size in memory.
	n, err := countEntries(file, size)
	if err != nil {
		return nil, err
	}
	if n > maxMembers {
		return nil, errBroken()
	}
	z, err := zip.NewReader(file, size)
	if err != nil {
		return nil, errBroken()
	}
	a := archive{}
	left, packed := uint64(l.Unpacked), uint64(size)
	for _, m := range z.File {
		path := strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(m.Name, `\`, "/"), "/"))
		// More packed bytes than there are: members overlap, or one lies.
		if tooLarge(path, m) || m.UncompressedSize64 > left || m.CompressedSize64 > packed {
			return nil, errBroken()
		}
		left, packed = left-m.UncompressedSize64, packed-m.CompressedSize64
		if a[path] == nil { // of two of one name the first counts
			a[path] = m
		}
	}
	return a, nil
}

func tooLarge(path string, m *zip.File) bool {
	known := strings.HasPrefix(path, "xl/worksheets/") || path == "xl/sharedstrings.xml"
	packed, unpacked := m.CompressedSize64, m.UncompressedSize64
	return !known && unpacked > maxMember || unpacked > smallMember && unpacked/maxRatio > packed
}

// countEntries counts the places in the file that look like an entry of the directory.
func countEntries(file io.ReaderAt, size int64) (n int, err error) {
	const overlap = len(directoryEntry) - 1
	buf := make([]byte, 64<<10)
	for at := int64(0); at < size; at += int64(len(buf) - overlap) {
		read, err := file.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if err != nil && err != io.EOF {
			return n, err
		}
		n += bytes.Count(buf[:read], []byte(directoryEntry))
	}
	return n, nil
}

// open returns the member at the path; nil = there is none. Reading fails if the member is
// larger than the directory says, or damaged.
func (a archive) open(path string) (io.ReadCloser, error) {
	m := a[strings.ToLower(path)]
	if m == nil {
		return nil, nil
	}
	r, err := m.Open()
	if err != nil {
		return nil, errBroken()
	}
	return &member{r, int64(m.UncompressedSize64)}, nil
}

type member struct {
	io.ReadCloser
	left int64
}

func (m *member) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if m.left -= int64(n); m.left < 0 {
		return 0, zip.ErrFormat
	}
	return n, err
}

// pages reads a file page by page and keeps the last four pages. Members are read alternately,
// and reading a page of a stored file costs a query.
type pages struct {
	file io.ReaderAt
	size int64
	kept [4]page // the latest one first
}

type page struct {
	at      int64
	content []byte
}

const pageBytes = 256 << 10

func (s *pages) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		if at+int64(n) >= s.size {
			return n, io.EOF
		}
		content, err := s.page((at + int64(n)) / pageBytes * pageBytes)
		if err != nil {
			return n, err
		}
		from := (at + int64(n)) % pageBytes
		if from >= int64(len(content)) {
			return n, io.ErrUnexpectedEOF
		}
		n += copy(p[n:], content[from:])
	}
	return n, nil
}

func (s *pages) page(at int64) ([]byte, error) {
	for i, k := range s.kept {
		if k.content != nil && k.at == at {
			copy(s.kept[1:i+1], s.kept[:i])
			s.kept[0] = k
			return k.content, nil
		}
	}
	oldest := s.kept[len(s.kept)-1].content
	if oldest == nil {
		oldest = make([]byte, pageBytes)
	}
	content := oldest[:min(pageBytes, s.size-at)]
	n, err := s.file.ReadAt(content, at)
	if err != nil && !(err == io.EOF && n == len(content)) {
		return nil, err
	}
	copy(s.kept[1:], s.kept[:len(s.kept)-1])
	s.kept[0] = page{at, content[:n:pageBytes]}
	return s.kept[0].content, nil
}
