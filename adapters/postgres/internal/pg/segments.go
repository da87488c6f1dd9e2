package pg

import (
	"context"

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
	return One(ctx, q, ScanSegment, segment.ErrNotFound, sql, args...)
}
