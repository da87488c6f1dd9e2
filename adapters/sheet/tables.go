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
}

// OpenTable continues at the position; see [job.Tables].
func (t Tables) OpenTable(ctx context.Context, uploadID int64, position json.RawMessage) (job.Rows, error) {
	file, err := t.Open(ctx, uploadID)
	if err != nil {
		return nil, err
	}
	seeker, ok := file.(io.ReadSeeker)
	if !ok {
		return nil, errors.Join(errors.New("the stored file cannot seek"), file.Close())
	}
	if err := checkName(file, seeker); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	rows, err := Resume(seeker, t.Limits, position)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return table{rows, file}, nil
}

// checkName refuses what is called a workbook and is none: read as text it would
// be a table without meaning.
func checkName(file io.ReadCloser, seeker io.ReadSeeker) error {
	named, ok := file.(interface{ Name() string })
	if !ok || !strings.HasSuffix(strings.ToLower(named.Name()), ".xlsx") {
		return nil
	}
	start := make([]byte, len(zipStart))
	if _, err := io.ReadFull(seeker, start); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if string(start) != zipStart && string(start) != xlsStart {
		return because(ErrUnreadable, "rule.file_no_workbook", "the file is called .xlsx and is no workbook; save it as XLSX or CSV")
	}
	_, err := seeker.Seek(0, io.SeekStart)
	return err
}

// table closes the file with its reader.
type table struct {
	*Reader
	file io.Closer
}

// Close frees both.
func (t table) Close() error { return errors.Join(t.Reader.Close(), t.file.Close()) }
