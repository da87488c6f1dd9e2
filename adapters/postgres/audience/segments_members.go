package audience

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/segment"
	"dropbell/domain/user"
)

const (
	// membersWindow is how many users one statement reads, so that each statement is short and
	// the planner never chooses a plan for all users.
	membersWindow = 20_000
	// chunkBits is how many ids share a row of segment_members, as a power of two.
	chunkBits = 16
)

// Members returns at most limit members with ids above after, ascending; an empty result means
// that there are no more. For a segment by rules it reads one range of known users after the
// other until it has limit members. Users of whom nothing is known are members of lists only.
// Members returns [segment.ErrNotFound].
func (s Segments) Members(ctx context.Context, id int64, after user.ID, limit int) ([]user.ID, error) {
	return s.MembersBy(ctx, id, nil, after, limit)
}

// MembersBy is [Segments.Members] by a rule that the segment had at another time; a nil rule
// means the segment's current rule.
func (s Segments) MembersBy(ctx context.Context, id int64, rule *segment.Rule, after user.ID, limit int) ([]user.ID, error) {
	g, err := s.Segment(ctx, id)
	if err != nil {
		return nil, err
	}
	if g.Kind == segment.ByList {
		return s.listMembers(ctx, id, after, limit)
	}
	if rule == nil {
		rule = &g.Rule
	}
	var list []user.ID
	for len(list) < limit {
		found, last, err := s.window(ctx, *rule, after, limit-len(list))
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
		if last == 0 {
			return list, nil
		}
		after = last
	}
	return list, nil
}

// window returns the members among the next users, and the last user that was read; last is 0 if
// there are no more users.
func (s Segments) window(ctx context.Context, r segment.Rule, after user.ID, limit int) (found []user.ID, last user.ID, err error) {
	f := compile(r, after, membersWindow, limit)
	// The frame is materialized: the users in the window must not depend on which users
	// are members.
	rows, err := s.Pool.Query(ctx, `
		with frame as materialized (select * from users where id > $1 order by id limit $2),
			found as (select u.id from frame u where `+f.text+` order by u.id limit $3)
		select id, false from found union all select max(id), true from frame order by 2, 1`, f.args...)
	if err != nil {
		return nil, 0, pg.Translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id *user.ID
		var edge bool
		if err := rows.Scan(&id, &edge); err != nil {
			return nil, 0, err
		}
		switch {
		case !edge:
			found = append(found, *id)
		case id != nil:
			last = *id
		}
	}
	if len(found) == limit { // there may be more in the window
		last = found[limit-1]
	}
	return found, last, pg.Translate(rows.Err())
}

// CountRange counts members among the next users; see [segment.CountStore].
func (s Segments) CountRange(ctx context.Context, r segment.Rule, after user.ID, limit int) (members, looked int64, last user.ID, err error) {
	f := compile(r, after, limit)
	err = s.Pool.QueryRow(ctx, `
		with frame as materialized (select * from users where id > $1 order by id limit $2)
		select count(*) filter (where `+f.text+`), count(*), coalesce(max(u.id), 0) from frame u`, f.args...).Scan(&members, &looked, &last)
	return members, looked, last, pg.Translate(err)
}

// StoreCount records the number of members; see [segment.CountStore].
func (s Segments) StoreCount(ctx context.Context, id, version, members int64) error {
	_, err := s.Pool.Exec(ctx, `update segments set members = $3, counted_at = now() where id = $1 and version = $2`, id, version, members)
	return pg.Translate(err)
}

// AddMembers adds ids to a list; see [segment.ListStore]. It locks the list's row against
// concurrent additions. It also checks for campaigns, because a cancelled job may still be
// running when a campaign for its list is published.
func (s Segments) AddMembers(ctx context.Context, id int64, ids []user.ID) (added int64, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := heldList(ctx, tx, id); err != nil {
			return err
		}
		if added, err = addChunks(ctx, tx, id, ids); err != nil || added == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `update segments set members = coalesce(members, 0) + $2, counted_at = now(), updated_at = now() where id = $1`, id, added)
		return err
	})
	return added, err
}

func addChunks(ctx context.Context, tx pgx.Tx, id int64, ids []user.ID) (added int64, err error) {
	fresh := map[int64]*roaring64.Bitmap{}
	var chunks []int64
	for _, u := range ids {
		chunk := int64(u) >> chunkBits
		if fresh[chunk] == nil {
			fresh[chunk] = roaring64.New()
			chunks = append(chunks, chunk)
		}
		fresh[chunk].Add(uint64(u))
	}
	rows := pg.Rows(ctx, tx, `select chunk, members from segment_members where segment_id = $1 and chunk = any($2)`, id, chunks)
	before := map[int64]int64{}
	var chunk int64
	var raw []byte
	if _, err := pgx.ForEachRow(rows, []any{&chunk, &raw}, func() error {
		known, err := readChunk(raw)
		if err == nil {
			before[chunk] = int64(known.GetCardinality())
			fresh[chunk].Or(known)
		}
		return err
	}); err != nil {
		return 0, err
	}
	contents, counts := make([][]byte, len(chunks)), make([]int64, len(chunks))
	for i, chunk := range chunks {
		fresh[chunk].RunOptimize()
		if contents[i], err = fresh[chunk].ToBytes(); err != nil {
			return 0, err
		}
		counts[i] = int64(fresh[chunk].GetCardinality())
		added += counts[i] - before[chunk]
	}
	_, err = tx.Exec(ctx, `
		insert into segment_members (segment_id, chunk, members, count)
		select $1, i.chunk, i.members, i.count from unnest($2::bigint[], $3::bytea[], $4::int[]) as i (chunk, members, count)
		on conflict (segment_id, chunk) do update set members = excluded.members, count = excluded.count
			where segment_members.count <> excluded.count`, id, chunks, contents, counts)
	return added, err
}

func readChunk(raw []byte) (*roaring64.Bitmap, error) {
	b := roaring64.New()
	if err := b.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("members of a list: %w", err)
	}
	return b, nil
}

// listMembers reads chunk after chunk.
func (s Segments) listMembers(ctx context.Context, id int64, after user.ID, limit int) ([]user.ID, error) {
	var list []user.ID
	for chunk := int64(after) >> chunkBits; len(list) < limit; chunk++ {
		var raw []byte
		err := s.Pool.QueryRow(ctx, `select chunk, members from segment_members where segment_id = $1 and chunk >= $2 order by chunk limit 1`,
			id, chunk).Scan(&chunk, &raw)
		if err == pgx.ErrNoRows {
			return list, nil
		}
		if err != nil {
			return nil, pg.Translate(err)
		}
		b, err := readChunk(raw)
		if err != nil {
			return nil, err
		}
		it := b.Iterator()
		it.AdvanceIfNeeded(uint64(after) + 1)
		for it.HasNext() && len(list) < limit {
			list = append(list, user.ID(it.Next()))
		}
	}
	return list, nil
}
