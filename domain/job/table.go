package job

import (
	"context"
	"encoding/json"
)

// Rows are the rows of an uploaded table.
type Rows interface {
	// Next returns the next row that is not blank, with its line. The cells are
	// valid until the next call. After the last row it returns [io.EOF]. After any
	// other error Broken reports whether the next row can be read.
	Next() (line int64, cells []string, err error)
	// Broken reports whether err ends the reading.
	Broken(err error) bool
	// Position is where reading can resume after the last row returned.
	Position() json.RawMessage
	Close() error
}

// ReadingEnded is the rule broken by a row after which a table could not be read,
// such as a row with a quote that is never closed.
const ReadingEnded = "rule.reading_ended"

// A Reading is how staff want a table to be read. An empty Reading leaves that to
// the contents of the file.
type Reading struct {
	// Encoding is the name of one of the encodings of texts; "" = detected.
	Encoding string `json:"encoding,omitempty"`
	// Sheet is the sheet of a workbook that is read, counted from 1; 0 = the first
	// sheet that is not hidden.
	Sheet int `json:"sheet,omitempty"`
}

// The encodings that can be read, by their names in a [Reading].
const (
	UTF8        = "utf-8"
	GB18030     = "gb18030" // and GBK and GB2312, which are parts of it
	Big5        = "big5"
	Windows1252 = "windows-1252"
)

// Encodings returns the names of all of them.
func Encodings() []string { return []string{UTF8, GB18030, Big5, Windows1252} }

// Format is the detected format of a table.
type Format struct {
	// Encoding is the encoding of a text file, "" for a workbook. Ambiguous means
	// that the bytes of the file may be other text in another encoding.
	Encoding  string `json:"encoding,omitempty"`
	Ambiguous bool   `json:"ambiguous,omitempty"`
	// Sheets are the names of a workbook's sheets. Sheet is the sheet that is read,
	// counted from 1.
	Sheets []string `json:"sheets,omitempty"`
	Sheet  int      `json:"sheet,omitempty"`
}

// Formatted is implemented by [Rows] that know the format of the table.
type Formatted interface{ Format() Format }

// A Preview is the beginning of a table, stored with the file so that showing it
// again does not read the file again.
type Preview struct {
	Format
	Header []string   `json:"header"`
	Rows   [][]string `json:"rows"` // the rows that can be read
	// Bare reports that nothing follows the header.
	Bare bool `json:"bare,omitempty"`
}

// Tables opens uploaded tables.
type Tables interface {
	// OpenTable continues at the position; nil is the beginning. It returns
	// [ErrUploadNotFound], [ErrBusy], or a fault that says why the file cannot be
	// read.
	OpenTable(ctx context.Context, uploadID int64, how Reading, position json.RawMessage) (Rows, error)
}
