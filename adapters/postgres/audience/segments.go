package audience

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
)

// Segments keeps audiences.
type Segments struct{ *pg.DB }

// NewSegments returns the segments of db.
func NewSegments(db *pg.DB) Segments { return Segments{db} }

// Segment returns [segment.ErrNotFound] if there is none.
func (s Segments) Segment(ctx context.Context, id int64) (segment.Segment, error) {
	return pg.OneSegment(ctx, s.Pool, `select `+pg.SegmentColumns+` from segments where id = $1`, id)
}

// Segments lists the latest changed first; see [segment.Store].
func (s Segments) Segments(ctx context.Context, q segment.Query) ([]segment.Segment, error) {
	s.DB = s.Reports(ctx)
	id, _ := strconv.ParseInt(strings.TrimSpace(q.Search), 10, 64)
	return pg.Collect(ctx, s.Pool, pg.ScanSegment, `select `+pg.SegmentColumns+` from segments
		where not hidden and ($1 = '' or strpos(lower(name), lower($1)) > 0 or id = $2) and ($3 = '' or kind = $3)
			and ($5::bigint = 0 or (updated_at, id) < ($4, $5))
		order by updated_at desc, id desc limit $6`,
		strings.TrimSpace(q.Search), id, string(q.Kind), q.After.UpdatedAt, q.After.ID, max(1, q.Limit))
}

// CreateSegment stores a new segment; see [segment.Store].
func (s Segments) CreateSegment(ctx context.Context, g segment.Segment, requestKey string, e staff.Entry) (segment.Segment, error) {
	rule, err := json.Marshal(g.Rule)
	if err != nil {
		return g, err
	}
	created, err := s.saved(ctx, e, func(tx pgx.Tx) (segment.Segment, error) {
		return pg.OneSegment(ctx, tx, `insert into segments (name, kind, rule, members, counted_at, created_by, request_key)
			values ($1, $2, $3, case when $2 = 'list' then 0 end, case when $2 = 'list' then now() end, $4, nullif($5, ''))
			on conflict (request_key) do nothing returning `+pg.SegmentColumns, g.Name, g.Kind, rule, g.CreatedBy, requestKey)
	})
	if errors.Is(err, segment.ErrNotFound) { // created before
		return pg.OneSegment(ctx, s.Pool, `select `+pg.SegmentColumns+` from segments where request_key = $1`, requestKey)
	}
	return created, err
}

// SaveSegment changes name and rule; see [segment.Store].
func (s Segments) SaveSegment(ctx context.Context, g segment.Segment, e staff.Entry) (segment.Segment, error) {
	rule, err := json.Marshal(g.Rule)
	if err != nil {
		return g, err
	}
	return s.saved(ctx, e, func(tx pgx.Tx) (segment.Segment, error) {
		var changes bool
		if err := tx.QueryRow(ctx, `select coalesce((select rule <> $2::jsonb from segments where id = $1), false)`, g.ID, rule).Scan(&changes); err != nil {
			return g, err
		}
		if changes {
			if err := doorsChange(ctx, tx, g.ID, e); err != nil {
				return g, err
			}
		}
		after, err := pg.OneSegment(ctx, tx, `update segments set name = $3, version = version + 1, updated_at = now(),
				members = case when rule = $4::jsonb then members end, counted_at = case when rule = $4::jsonb then counted_at end, rule = $4
			where id = $1 and version = $2 returning `+pg.SegmentColumns, g.ID, g.Version, g.Name, rule)
		if !errors.Is(err, segment.ErrNotFound) {
			return after, err
		}
		if _, err := pg.OneSegment(ctx, tx, `select `+pg.SegmentColumns+` from segments where id = $1`, g.ID); err != nil {
			return after, err
		}
		return after, fault.ErrStale
	})
}

// Files returns the jobs that fill a list; see [segment.Store].
func (s Segments) Files(ctx context.Context, id int64, limit int) ([]job.Job, error) {
	return pg.Collect(ctx, s.Pool, func(row pgx.CollectableRow) (job.Job, error) { return pg.ScanBackground(row) }, `select `+pg.BackgroundColumns+` from jobs j
		where j.kind = 'segment.list' and j.params ->> 'segment_id' = $1 order by j.id desc limit $2`, pg.Itoa(id), max(1, limit))
}

// CloneSegment copies a segment with its members; see [segment.Store].
func (s Segments) CloneSegment(ctx context.Context, id int64, name string, e staff.Entry) (segment.Segment, error) {
	return s.saved(ctx, e, func(tx pgx.Tx) (segment.Segment, error) {
		g, err := pg.OneSegment(ctx, tx, `insert into segments (name, kind, rule, members, counted_at, created_by)
			select $2, kind, rule, members, counted_at, $3 from segments where id = $1 returning `+pg.SegmentColumns, id, name, pg.AuditActor(e.Actor))
		if err != nil {
			return g, err
		}
		// Members of a file that is being read meanwhile may be missing in the copy, so the
		// number of members is counted from the copy.
		if _, err = tx.Exec(ctx, `insert into segment_members select $2, chunk, members, count from segment_members where segment_id = $1`, id, g.ID); err != nil {
			return g, err
		}
		if g.Kind == segment.ByList {
			return pg.OneSegment(ctx, tx, `update segments set members = (select coalesce(sum(count), 0) from segment_members where segment_id = $1)
				where id = $1 returning `+pg.SegmentColumns, g.ID)
		}
		return g, nil
	})
}

// saved runs do and records the entry e with the id of its result, in one transaction.
func (s Segments) saved(ctx context.Context, e staff.Entry, do func(pgx.Tx) (segment.Segment, error)) (g segment.Segment, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if g, err = do(tx); err != nil {
			return err
		}
		e.ObjectID = strconv.FormatInt(g.ID, 10)
		return pg.InsertAudit(ctx, tx, e)
	})
	return g, err
}

// DeleteSegment removes a segment that no campaign needs; see [segment.Store].
func (s Segments) DeleteSegment(ctx context.Context, id int64, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		// Publishing locks this row, so that a campaign is found below, or its publication finds
		// no segment. A draft created at this very moment may be overlooked; it cannot be
		// published later.
		if _, err := pg.OneSegment(ctx, tx, `select `+pg.SegmentColumns+` from segments where id = $1 for update`, id); err != nil {
			return err
		}
		uses, err := segmentUses(ctx, tx, id)
		if err != nil {
			return err
		}
		for _, u := range uses {
			if !u.Ended {
				return segment.ErrInUse.Because("the campaign “%s” uses it and has not ended; wait until it has, or cancel it", u.Name)
			}
		}
		if err := noDoors(ctx, tx, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from segments where id = $1`, id); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// Uses lists the campaigns that refer to the segment; see [segment.Store].
func (s Segments) Uses(ctx context.Context, id int64) (uses []segment.Use, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		uses, err = segmentUses(ctx, tx, id)
		return err
	})
	return uses, err
}

func segmentUses(ctx context.Context, tx pgx.Tx, id int64) ([]segment.Use, error) {
	var known bool // there are no campaigns until their migration is applied
	if err := tx.QueryRow(ctx, `select to_regclass('campaigns') is not null`).Scan(&known); err != nil || !known {
		return nil, err
	}
	rows := pg.Rows(ctx, tx, `
		select id, name, state, `+usedUp+`, `+keepsList+` from campaigns
		where audience ->> 'kind' in ('segment_id', 'list_id') and audience ->> 'id' = $1::text
		order by `+usedUp+`, not (`+keepsList+`), id desc limit 100`, strconv.FormatInt(id, 10))
	return pgx.CollectRows(rows, pgx.RowToStructByPos[segment.Use])
}

const (
	// usedUp says of a campaign that it needs its segment no more.
	usedUp = `state in ('finished', 'cancelled', 'failed')`
	// keepsList selects campaigns whose list must not change. A draft whose end has passed can
	// no longer be approved and is not selected.
	keepsList = `(state = 'scheduled' or state = 'draft' and approval_asked_at is not null and ends_at > clock_timestamp() or state in ('running', 'paused') and cut_at is null)
		and audience ->> 'kind' = 'list_id'`
)

// heldList returns the list and locks it against publication until the transaction ends:
// publishing, and asking for approval, take a share lock on the row and then look for jobs.
// heldList returns [segment.ErrListInUse] if a campaign needs the list unchanged.
func heldList(ctx context.Context, tx pgx.Tx, id int64) (segment.Segment, error) {
	g, err := pg.OneSegment(ctx, tx, `select `+pg.SegmentColumns+` from segments where id = $1 for update`, id)
	if err != nil {
		return g, err
	}
	if g.Kind != segment.ByList {
		return g, segment.ErrIsRules
	}
	var name string
	err = tx.QueryRow(ctx, `select name from campaigns where `+keepsList+` and audience ->> 'id' = $1 order by id desc limit 1`, pg.Itoa(id)).Scan(&name)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return g, nil
	case err != nil:
		return g, err
	}
	return g, segment.KeptBy(name)
}

// FillList starts the job that adds to a list; see [segment.Store].
func (s Segments) FillList(ctx context.Context, id int64, j job.Job, requestKey string, e staff.Entry) (started job.Job, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := heldList(ctx, tx, id); err != nil {
			return err
		}
		if err := doorsChange(ctx, tx, id, e); err != nil {
			return err
		}
		started, err = pg.StartJob(ctx, tx, j, requestKey, e)
		return err
	})
	if pg.Violates(err, "jobs_upload_id_fkey") { // removed in this very moment
		return j, job.ErrUploadNotFound
	}
	return started, err
}
