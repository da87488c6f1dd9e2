package audience

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// freezeWindow is how many users one part of a door's members is cut from.
const freezeWindow = 100_000

// allCut is cut_to of a door whose members are all cut.
const allCut = math.MaxInt64

// dueDoors selects doors that open within [template.FreezeBefore] and are not frozen. The doors of a draw open with its
// entries; if these are taken from the publication on, each user is judged at the entry. It reads the templates of
// these doors alone, however many templates there are.
const dueDoors = ` from doors d cross join lateral (
	select state, case when opening_mode = 'first_come' then opens_at when entry_minutes > 0 then opens_at - make_interval(mins => entry_minutes) end as opens_at
	from templates where id = d.template_id limit 1) t
where d.frozen_at is null and t.state in ('published', 'paused')
	and t.opens_at - make_interval(mins => d.lead_minutes) <= statement_timestamp() + interval '60 seconds'`

// DoorsWait asks for doors that are to be frozen.
const DoorsWait pg.Question = `(select 1` + dueDoors + ` limit 1)`

// dueDoor is a door that is to be frozen.
type dueDoor struct {
	template int64
	place    int
	who      template.Who
	segment  *int64
	cutTo    int64
}

// FreezeNext implements [door.FreezeStore].
func (s Doors) FreezeNext(ctx context.Context) (more bool, err error) {
	var due dueDoor
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select d.template_id, d.place, d.who, d.segment_id, d.cut_to`+dueDoors+`
			order by t.opens_at - make_interval(mins => d.lead_minutes), d.template_id, d.place limit 1 for update of d skip locked`).
			Scan(&due.template, &due.place, &due.who, &due.segment, &due.cutTo)
		if err != nil || due.cutTo == allCut {
			return err
		}
		return due.cut(ctx, tx)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, pg.Translate(err)
	case due.cutTo != allCut:
		return true, nil
	}
	return true, s.freeze(ctx, due)
}

// cut stores the next part of the members. The door's row is locked.
func (d *dueDoor) cut(ctx context.Context, tx pgx.Tx) error {
	added := int64(0)
	var err error
	switch last := user.ID(0); d.who {
	case template.ToList:
		// In one statement: lists are bitmaps already.
		err = tx.QueryRow(ctx, `with copied as (
				insert into door_members (template_id, place, chunk, members, count)
				select $1, $2, chunk, members, count from segment_members where segment_id = $3 returning count)
			select coalesce(sum(count), 0) from copied`, d.template, d.place, d.segment).Scan(&added)
		d.cutTo = allCut
	case template.ToSegment, template.ToCodes:
		if d.who == template.ToCodes {
			added, last, err = d.cutCodes(ctx, tx)
		} else {
			added, last, err = d.cutRule(ctx, tx)
		}
		if d.cutTo = int64(last); last == 0 {
			d.cutTo = allCut
		}
	default:
		d.cutTo = allCut
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update doors set cut_to = $3, members = members + $4, cut_at = coalesce(cut_at, clock_timestamp()) where template_id = $1 and place = $2`,
		d.template, d.place, d.cutTo, added)
	return err
}

// cutRule stores the members among the next users. last is 0 if there are no more users.
func (d *dueDoor) cutRule(ctx context.Context, tx pgx.Tx) (added int64, last user.ID, err error) {
	g, err := pg.OneSegment(ctx, tx, `select `+pg.SegmentColumns+` from segments where id = $1`, *d.segment)
	if err != nil {
		return 0, 0, err
	}
	found, last, err := membersAfter(ctx, tx, g.Rule, user.ID(d.cutTo), freezeWindow)
	if err != nil {
		return 0, 0, err
	}
	return int64(len(found)), last, d.store(ctx, tx, found)
}

// cutCodes stores the next users who have entered an access code.
func (d *dueDoor) cutCodes(ctx context.Context, tx pgx.Tx) (added int64, last user.ID, err error) {
	var found []user.ID
	err = tx.QueryRow(ctx, `select coalesce(array_agg(user_id), '{}'), coalesce(max(user_id), 0) from (
		select user_id from door_codes where template_id = $1 and user_id > $2 order by user_id limit $3) c`, d.template, d.cutTo, freezeWindow).Scan(&found, &last)
	if err != nil {
		return 0, 0, err
	}
	return int64(len(found)), last, d.store(ctx, tx, found)
}

// store adds the users to the members of the door.
func (d *dueDoor) store(ctx context.Context, tx pgx.Tx, found []user.ID) error {
	chunks := map[int64]*roaring64.Bitmap{}
	for _, id := range found {
		chunk := int64(id) >> chunkBits
		if chunks[chunk] == nil {
			chunks[chunk] = roaring64.New()
		}
		chunks[chunk].Add(uint64(id))
	}
	b := &pgx.Batch{}
	for chunk, fresh := range chunks {
		// The part before may end in the middle of a chunk.
		var raw []byte
		err := tx.QueryRow(ctx, `select members from door_members where template_id = $1 and place = $2 and chunk = $3`, d.template, d.place, chunk).Scan(&raw)
		if err == nil {
			var before *roaring64.Bitmap
			if before, err = readChunk(raw); err == nil {
				fresh.Or(before)
			}
		}
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		fresh.RunOptimize()
		if raw, err = fresh.ToBytes(); err != nil {
			return err
		}
		b.Queue(`insert into door_members (template_id, place, chunk, members, count) values ($1, $2, $3, $4, $5)
			on conflict (template_id, place, chunk) do update set members = excluded.members, count = excluded.count`,
			d.template, d.place, chunk, raw, fresh.GetCardinality())
	}
	return tx.SendBatch(ctx, b).Close()
}

// membersAfter returns the members among the next users, and the last of these users, 0 = there are none.
func membersAfter(ctx context.Context, tx pgx.Tx, r segment.Rule, after user.ID, limit int) (found []user.ID, last user.ID, err error) {
	f := compile(r, after, limit)
	err = tx.QueryRow(ctx, `
		with frame as materialized (select * from users where id > $1 order by id limit $2)
		select coalesce(array_agg(u.id) filter (where `+f.text+`), '{}'), coalesce(max(u.id), 0) from frame u`, f.args...).Scan(&found, &last)
	return found, last, err
}

// freeze records that all members of the door are cut. The first door also fixes the number of issued coupons from
// which the shares count. The template is locked before the door, as by every change of doors.
func (s Doors) freeze(ctx context.Context, d dueDoor) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.LimitLocks(ctx, tx); err != nil {
			return err
		}
		e := event.Template{TemplateID: d.template}
		var ahead bool
		err := tx.QueryRow(ctx, `select t.shop_number, t.version, t.opens_at, t.opens_at - make_interval(mins => d.lead_minutes) > clock_timestamp()
			from templates t join doors d on d.template_id = t.id where t.id = $1 and d.place = $2 for no key update of t`, d.template, d.place).
			Scan(&e.ShopNumber, &e.Version, &e.OpensAt, &ahead)
		if err != nil {
			return err
		}
		var members int64
		err = tx.QueryRow(ctx, `update doors set frozen_at = clock_timestamp() where template_id = $1 and place = $2 and frozen_at is null and cut_to = $3
			returning members`, d.template, d.place, int64(allCut)).Scan(&members)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // by another process
		}
		if err != nil {
			return err
		}
		if d.place == 1 && ahead {
			if _, err := tx.Exec(ctx, `update templates set door_base = issued where id = $1`, d.template); err != nil {
				return err
			}
		}
		err = pg.InsertAudit(ctx, tx, staff.Entry{Actor: staff.System(), Action: "template.door_frozen", ObjectKind: "template", ObjectID: strconv.FormatInt(d.template, 10),
			ShopNumber: e.ShopNumber, After: map[string]string{"door": strconv.Itoa(d.place), "members": fmt.Sprint(members)}})
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `select nextval('hook_sequence'), clock_timestamp()`).Scan(&e.Sequence, &e.At); err != nil {
			return err
		}
		e.OpensAt, e.At = e.OpensAt.UTC(), e.At.UTC()
		return pg.Announce(ctx, tx, event.TemplateChanged, e)
	})
}
