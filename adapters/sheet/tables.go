package sheet

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"dropbell/domain/job"
)

// Tables reads stored files as tables; see [job.Tables].
type Tables struct {
	// Open returns a stored file, which must be an [io.Seeker] as well.
	Open   func(ctx context.Context, uploadID int64) (io.ReadCloser, error)
	Limits Limits
	// Turns lets one workbook be open at a time; nil = any number.
	Turns *Turns
}

// OpenTable continues at the position; see [job.Tables].
func (t Tables) OpenTable(ctx context.Context, uploadID int64, how job.Reading, position json.RawMessage) (job.Rows, error) {
	file, err := t.Open(ctx, uploadID)
	if err != nil {
		return nil, err
	}
	seeker, ok := file.(io.ReadSeeker)
	if !ok {
		return nil, errors.Join(errors.New("the stored file cannot seek"), file.Close())
	}
	isWorkbook, err := checkName(file, seeker)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	release := func() {}
	if isWorkbook {
		if release, err = t.Turns.take(ctx); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	rows, err := Resume(seeker, t.Limits, how, position)
	if err != nil {
		release()
		return nil, errors.Join(err, file.Close())
	}
	return &table{rows, file, release}, nil
}

// checkName reports whether the file is a workbook. It refuses a file that is called .xlsx and
// is no workbook: read as text, it would give a meaningless table.
func checkName(file io.ReadCloser, seeker io.ReadSeeker) (isWorkbook bool, err error) {
	start := make([]byte, len(zipStart))
	if _, err := io.ReadFull(seeker, start); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	named, ok := file.(interface{ Name() string })
	if ok && strings.HasSuffix(strings.ToLower(named.Name()), ".xlsx") && string(start) != zipStart && string(start) != xlsStart {
		return false, because(ErrUnreadable, "rule.file_no_workbook", "the file is called .xlsx and is no workbook; save it as XLSX or CSV")
	}
	_, err = seeker.Seek(0, io.SeekStart)
	return string(start) == zipStart, err
}

// table closes the file with its reader and ends the turn, once.
type table struct {
	*Reader
	file    io.Closer
	release func()
}

// Close frees all of it.
func (t *table) Close() error {
	defer t.release()
	return errors.Join(t.Reader.Close(), t.file.Close())
}
