package pg

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/segment"
)

// SegmentColumns are the columns that ScanSegment reads.
const SegmentColumns = `id, name, kind, rule, version, members, counted_at, created_by, created_at, updated_at`

// ScanSegment reads one row.
func ScanSegment(row pgx.CollectableRow) (g segment.Segment, err error) {
	var rule []byte
	err = row.Scan(&g.ID, &g.Name, &g.Kind, &rule, &g.Version, &g.Members, &g.CountedAt, &g.CreatedBy, &g.CreatedAt, &g.UpdatedAt)
	if err != nil {
		return g, err
	}
	return g, json.Unmarshal(rule, &g.Rule)
}

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
