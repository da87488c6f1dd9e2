package sheet

import (
	"context"
	"encoding/json"
	"errors"
	"io"

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
	rows, err := Resume(seeker, t.Limits, position)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return table{rows, file}, nil
}

// table closes the file with its reader.
type table struct {
	*Reader
	file io.Closer
}

// Close frees both.
func (t table) Close() error { return errors.Join(t.Reader.Close(), t.file.Close()) }
