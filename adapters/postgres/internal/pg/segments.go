package pg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/segment"
)

// SegmentColumns are the columns of a [segment.Segment].
var SegmentColumns = RowColumns[segment.Segment]("segments")

// ScanSegment reads one row.
var ScanSegment = pgx.RowToStructByName[segment.Segment]

// OneSegment returns the segment that the statement selects, or
// [segment.ErrNotFound].
func OneSegment(ctx context.Context, q Querier, sql string, args ...any) (segment.Segment, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return segment.Segment{}, Translate(err)
	}
	g, err := pgx.CollectExactlyOneRow(rows, ScanSegment)
	if errors.Is(err, pgx.ErrNoRows) {
		return g, segment.ErrNotFound
	}
	return g, Translate(err)
}
