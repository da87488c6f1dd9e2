package job

import (
	"context"
	"encoding/json"
)

// Rows are those of an uploaded table.
type Rows interface {
	// Next returns the next row that is not blank, with its line; the cells are
	// valid until the next call. After the last it returns [io.EOF]. Any other
	// error says what is wrong; Broken tells whether reading can go on.
	Next() (line int64, cells []string, err error)
	// Broken reports whether err ends the reading.
	Broken(err error) bool
	// Position is where reading can go on after the last row returned.
	Position() json.RawMessage
	Close() error
}

// ReadingEnded is the rule that a row breaks behind which a table could not be
// read, such as one with a quote that is never closed.
const ReadingEnded = "rule.reading_ended"

// Tables opens uploaded tables.
type Tables interface {
	// OpenTable continues at the position; nil is the beginning. It returns
	// [ErrUploadNotFound], or a fault that says why the file cannot be read.
	OpenTable(ctx context.Context, uploadID int64, position json.RawMessage) (Rows, error)
}
