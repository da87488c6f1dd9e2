package audience

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/door"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Doors stores the members of the doors of drops.
type Doors struct{ *pg.DB }

// NewDoors returns the doors of db.
func NewDoors(db *pg.DB) Doors { return Doors{db} }

// judgeDoors returns the doors of template $1 with what user $2, whose ids share chunk $3, means for
// each: whether the frozen members and the list have the user is in their bitmaps; late says that the
// user may have been added after the members were cut, code that the user has an access code of the drop. A transaction that adds a user can end a while
// after the instant at which the user was created.
const judgeDoors = `
select d.who, d.frozen_at is not null as frozen, s.rule, m.members, l.members, coalesce(u.created_at > d.cut_at - interval '1 minute', false) as late,
	d.who = 'codes' and exists (select from door_codes c where c.template_id = $1 and c.user_id = $2) as code
from doors d left join segments s on s.id = d.segment_id left join users u on u.id = $2
left join door_members m on m.template_id = d.template_id and m.place = d.place and m.chunk = $3 and d.frozen_at is not null
left join segment_members l on l.segment_id = d.segment_id and l.chunk = $3 and d.who = 'list' and d.frozen_at is null
where d.template_id = $1 order by d.place`

// Judge implements [door.MemberStore].
func (s Doors) Judge(ctx context.Context, templateID int64, by user.ID) (int, error) {
	rows := pg.Rows(ctx, s.Pool, judgeDoors, templateID, by, int64(by)>>chunkBits)
	// The first door that certainly lets the user in, and the rules of doors before it.
	certain, place := 0, 0
	var cases strings.Builder
	args := []any{by}
	var who template.Who
	var frozen, late, code bool
	var rule *segment.Rule
	var members, list []byte
	_, err := pgx.ForEachRow(rows, []any{&who, &frozen, &rule, &members, &list, &late, &code}, func() error {
		place++
		if certain > 0 {
			return nil
		}
		in, err := has(members, by)
		if err == nil && !in {
			in, err = has(list, by)
		}
		switch {
		case err != nil:
			return err
		case in || code || who == template.ToAll:
			certain = place
		case who == template.ToSegment && rule != nil && (!frozen || late):
			f := compile(*rule, args...)
			fmt.Fprintf(&cases, " when %s then %d", f.text, place)
			args = f.args
		}
		return nil
	})
	if err != nil || cases.Len() == 0 {
		return certain, pg.Translate(err)
	}
	found := 0
	err = s.Pool.QueryRow(ctx, `select case`+cases.String()+` else 0 end from users u where u.id = $1`, args...).Scan(&found)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, pg.Translate(err)
	}
	if found == 0 {
		found = certain
	}
	return found, nil
}

func has(raw []byte, by user.ID) (bool, error) {
	if raw == nil {
		return false, nil
	}
	b, err := readChunk(raw)
	return err == nil && b.Contains(uint64(by)), err
}

// bitmap is a [door.Set].
type bitmap struct{ *roaring64.Bitmap }

// Contains is part of [door.Set].
func (b bitmap) Contains(id user.ID) bool { return b.Bitmap.Contains(uint64(id)) }

// Frozen implements [door.MemberStore].
func (s Doors) Frozen(ctx context.Context, templateID int64, place int) (door.Set, error) {
	rows, err := s.Pool.Query(ctx, `select members from door_members where template_id = $1 and place = $2 order by chunk`, templateID, place)
	if err != nil {
		return nil, pg.Translate(err)
	}
	all := roaring64.New()
	var raw []byte
	_, err = pgx.ForEachRow(rows, []any{&raw}, func() error {
		b, err := readChunk(raw)
		if err == nil {
			all.Or(b)
		}
		return err
	})
	return bitmap{all}, pg.Translate(err)
}

// noDoors returns [segment.ErrInUse] if a door of a drop that is not over uses the segment.
func noDoors(ctx context.Context, tx pgx.Tx, segmentID int64) error {
	var drop string
	err := tx.QueryRow(ctx, `select t.name from doors d join templates t on t.id = d.template_id
		where d.segment_id = $1 and t.state in ('draft', 'published', 'paused') order by t.id limit 1`, segmentID).Scan(&drop)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return segment.ErrInUse.Because("a door of the drop “%s” uses it; wait until the drop is over, or change its doors", drop)
}

// doorsChange records, for each published drop with a door of the segment that is not frozen, that members of the door
// change by the action of e, and counts the change where the drop has a draw.
func doorsChange(ctx context.Context, tx pgx.Tx, segmentID int64, e staff.Entry) error {
	rows := pg.Rows(ctx, tx, `select t.id, t.shop_number, d.name from doors d join templates t on t.id = d.template_id
		where d.segment_id = $1 and d.frozen_at is null and t.state in ('published', 'paused') and t.closes_at > clock_timestamp() order by t.id, d.place`, segmentID)
	type changed struct {
		id, shop int64
		door     string
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c changed, err error) { return c, row.Scan(&c.id, &c.shop, &c.door) })
	if err != nil {
		return err
	}
	for _, c := range list {
		if err := pg.InsertAudit(ctx, tx, staff.Entry{Actor: e.Actor, Action: "template.door_members", ObjectKind: "template", ObjectID: strconv.FormatInt(c.id, 10), ShopNumber: c.shop,
			Reason: e.Reason, After: map[string]string{"door": c.door, "segment": strconv.FormatInt(segmentID, 10), "by": e.Action}}); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update draws set group_changes = group_changes + 1 where template_id = $1`, c.id); err != nil {
			return err
		}
	}
	return nil
}

// leaveDoors takes the user out of the members of every door.
func leaveDoors(ctx context.Context, tx pgx.Tx, id user.ID) error {
	chunk := int64(id) >> chunkBits
	rows := pg.Rows(ctx, tx, `select template_id, place, members from door_members where chunk = $1 order by template_id, place for update`, chunk)
	b := &pgx.Batch{}
	var templateID int64
	var place int
	var raw []byte
	_, err := pgx.ForEachRow(rows, []any{&templateID, &place, &raw}, func() error {
		set, err := readChunk(raw)
		if err != nil || !set.Contains(uint64(id)) {
			return err
		}
		set.Remove(uint64(id))
		left, err := set.ToBytes()
		if err != nil {
			return err
		}
		b.Queue(`update door_members set members = $4, count = count - 1 where template_id = $1 and place = $2 and chunk = $3`, templateID, place, chunk, left)
		b.Queue(`update doors set members = members - 1 where template_id = $1 and place = $2 and members > 0`, templateID, place)
		return nil
	})
	if err != nil {
		return err
	}
	return tx.SendBatch(ctx, b).Close()
}

// doorsOf returns the doors whose frozen members the user is among, as JSON.
func doorsOf(ctx context.Context, tx pgx.Tx, id user.ID) (json.RawMessage, error) {
	rows := pg.Rows(ctx, tx, `select m.template_id, m.place, d.name, m.members from door_members m join doors d on d.template_id = m.template_id and d.place = m.place
		where m.chunk = $1 order by m.template_id, m.place`, int64(id)>>chunkBits)
	type doorOf struct {
		TemplateID int64  `json:"template_id"`
		Place      int    `json:"place"`
		Name       string `json:"name"`
	}
	list := []doorOf{}
	var d doorOf
	var raw []byte
	_, err := pgx.ForEachRow(rows, []any{&d.TemplateID, &d.Place, &d.Name, &raw}, func() error {
		in, err := has(raw, id)
		if in {
			list = append(list, d)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(list)
}
