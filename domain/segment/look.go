package segment

import (
	"context"
	"errors"
	"io"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/user"
)

// lookRows is how many rows of a file are looked at before it is taken.
const lookRows = 20

// look returns a [fault.Fields] about "file" if the upload cannot be read or holds
// no ids. The upload is then refused at once instead of by the job. Errors of
// single rows are left to the job.
func (s *Service) look(ctx context.Context, uploadID int64) error {
	rows, err := s.Tables.OpenTable(ctx, uploadID, job.Reading{}, nil)
	if err == nil {
		err = errors.Join(findIDs(rows), rows.Close())
	}
	if err == nil || fault.KindOf(err) != fault.Invalid {
		return err
	}
	f := fault.Field{Key: "rule.file_unreadable", Message: err.Error()}
	if why, ok := errors.AsType[*fault.Fields](err); ok && len(why.List) > 0 {
		f = why.List[0]
	}
	f.Name = "file"
	return &fault.Fields{List: []fault.Field{f}}
}

// findIDs returns an error if the beginning of a table is no list of ids. A column
// with a known name and a row below it is enough. Otherwise the first column must
// have an id.
func findIDs(rows job.Rows) error {
	e := &fault.Fields{}
	var named, ended bool
	var read int
	var broken error
	for range lookRows {
		_, cells, err := rows.Next()
		if ended = err == io.EOF; ended {
			break
		}
		if err != nil && rows.Broken(err) {
			return err
		}
		if err != nil {
			broken = err
			continue
		}
		if read++; read == 1 && user.IDColumn(cells) >= 0 {
			named = true
			continue
		}
		if _, err := user.ParseID(cells[0]); named || err == nil {
			return nil
		}
	}
	switch {
	case named && !ended:
		return nil
	case broken != nil:
		return broken
	case named || read == 0:
		e.Add("", "rule.file_empty", "the file is empty; choose one with a row of names and rows below it")
	default:
		e.Add("", "rule.file_no_ids", "the file has no column of ids; call one user_id or id, or put the ids into the first column")
	}
	return e
}
