package sheet

import (
	"context"
	"errors"

	"dropbell/domain/coupon"
	"dropbell/domain/job"
)

// Lists opens uploads as tables.
type Lists struct{ Tables Tables }

// OpenList returns the rows of an upload; see [coupon.Lists].
func (l Lists) OpenList(ctx context.Context, uploadID int64) (coupon.Rows, error) {
	rows, err := l.Tables.OpenTable(ctx, uploadID, job.Reading{}, nil)
	return listRows{rows}, err
}

type listRows struct{ job.Rows }

// Next returns a row that cannot be read as one without cells.
func (r listRows) Next() (int64, []string, error) {
	line, cells, err := r.Rows.Next()
	if errors.Is(err, ErrBadRow) {
		return line, nil, nil
	}
	return line, cells, err
}
