package drops

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

// told is the information that the users of one part got about a template's
// opening.
type told struct {
	// wrong are the users, by channel, whose last message named another opening
	// than the announcement does.
	wrong [delivery.Channels]roaring64.Bitmap
	// corrected[n] are the users who were sent at least n+1 earlier corrections.
	corrected []roaring64.Bitmap
}

// readTold reads the template's batches in the order of their creation. This is
// the order of the messages too, because a correction is cut only after all
// batches about other openings have ended. The announcement's own batches are
// left out, so that a second cut after a crash finds the same users.
func (s Announcements) readTold(ctx context.Context, a reminder.Announcement, part delivery.Range) (*told, error) {
	rows := pg.Rows(ctx, s.Pool, `
		-- one row a batch: what it is, whether it named the opening $2, and the users it reached
		select b.kind = 'correction', b.owner_id, b.channel, coalesce(s.opens_at, o.opens_at) = $2, b.sent
		from batches b
		left join slots s on b.kind = 'reminder' and s.id = b.owner_id
		left join announcements o on b.kind = 'correction' and o.id = b.owner_id
		where b.template_id = $1 and b.kind in ('reminder', 'correction') and b.sent_count > 0 and b.from_user <= $4 and b.to_user >= $3
			and not (b.kind = 'correction' and b.owner_id = $5)
		order by b.id`, a.TemplateID, a.OpensAt, part.From, part.To, a.ID)
	t := &told{corrected: make([]roaring64.Bitmap, a.PerPerson)}
	corrections := map[int64]*roaring64.Bitmap{}
	var correction, right bool
	var owner int64
	var c delivery.Channel
	var sent []byte
	_, err := pgx.ForEachRow(rows, []any{&correction, &owner, &c, &right, &sent}, func() error {
		set, err := pg.DecodeSet(sent)
		if err != nil {
			return err
		}
		if right {
			t.wrong[c].AndNot(set)
		} else {
			t.wrong[c].Or(set)
		}
		if correction && corrections[owner] == nil {
			corrections[owner] = roaring64.New()
		}
		if correction {
			corrections[owner].Or(set)
		}
		return nil
	})
	for _, users := range corrections {
		t.count(users)
	}
	if err != nil {
		return nil, pg.Translate(err)
	}
	return t, s.ofOpening(ctx, a, part, t)
}

// ofOpening leaves among the wrong users of the part those whose door opens at the instant that the announcement names.
func (s Announcements) ofOpening(ctx context.Context, a reminder.Announcement, part delivery.Range, t *told) error {
	var doors template.DoorSet
	if err := s.Pool.QueryRow(ctx, `select doors_at($1, $2)`, a.TemplateID, a.OpensAt).Scan(&doors); err != nil || doors == template.AllDoors {
		return pg.Translate(err)
	}
	var due reminder.Due
	for c := range t.wrong {
		due[c] = pg.SetWithin(&t.wrong[c], part)
	}
	if err := ofDoors(ctx, s.Doors, a.TemplateID, doors, &due); err != nil {
		return err
	}
	for c, ids := range due {
		t.wrong[c].Clear()
		for _, id := range ids {
			t.wrong[c].Add(uint64(id))
		}
	}
	return nil
}

// count increments the number of corrections of these users.
func (t *told) count(users *roaring64.Bitmap) {
	for n := len(t.corrected) - 1; n > 0; n-- {
		t.corrected[n].Or(roaring64.And(&t.corrected[n-1], users))
	}
	t.corrected[0].Or(users)
}

// due returns the users of the part who are to be corrected.
func (t *told) due(part delivery.Range) (due reminder.Due) {
	most := &t.corrected[len(t.corrected)-1]
	for c := range t.wrong {
		due[c] = pg.SetWithin(roaring64.AndNot(&t.wrong[c], most), part)
	}
	return due
}

// add counts the users of the part into n.
func (t *told) add(n *reminder.Reach, part delivery.Range) {
	all := roaring64.New()
	for c := range t.wrong {
		all.Or(&t.wrong[c])
	}
	clip := func(set *roaring64.Bitmap) int64 { return int64(len(pg.SetWithin(set, part))) }
	left := roaring64.And(all, &t.corrected[len(t.corrected)-1])
	all.AndNot(left)
	n.LeftOut += clip(left)
	n.Users += clip(all)
	n.Again += clip(roaring64.And(all, &t.corrected[0]))
	for c, ids := range t.due(part) {
		n.Audience[c] += int64(len(ids))
	}
}

// Reach counts the users to whom the announcement would be sent, without the held-out users. Held-out
// users were sent no reminder, so they are in the audience of no correction.
func (s Announcements) Reach(ctx context.Context, a reminder.Announcement) (n reminder.Reach, err error) {
	parts, err := s.audienceParts(ctx, a)
	if err != nil {
		return n, err
	}
	var holdOut int
	if err = s.Pool.QueryRow(ctx, `select hold_out_percent from templates where id = $1`, a.TemplateID).Scan(&holdOut); err != nil {
		return n, pg.Translate(err)
	}
	for _, part := range parts {
		if a.Kind == delivery.KindCancelled {
			err = s.reachReservers(ctx, a, holdOut, part, &n)
		} else {
			var t *told
			if t, err = s.readTold(ctx, a, part); err == nil {
				t.add(&n, part)
			}
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (s Announcements) reachReservers(ctx context.Context, a reminder.Announcement, holdOut int, part delivery.Range, n *reminder.Reach) error {
	due, err := s.ReadAudience(ctx, reminder.AnnouncementCut{Announcement: a}, part)
	users := roaring64.New()
	for c, ids := range due {
		for _, id := range ids {
			if !delivery.HeldOutOfDrop(a.TemplateID, holdOut, id) {
				n.Audience[c]++
				users.Add(uint64(id))
			}
		}
	}
	n.Users += int64(users.GetCardinality())
	return err
}
