package delivery

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// topicBatches are the batches of a topic with sent messages, and how often the topic is asked
// for.
type topicBatches struct {
	asked   int
	first   time.Time // of the pages that are counted in asked
	loading bool
	again   map[int64]bool // batches that changed while the topic was being read
	loaded  bool
	used    time.Time
	size    int
	owners  owners
}

type batchOwner struct {
	kind delivery.Kind
	id   int64
}

// appBatch is one in-app batch.
type appBatch struct {
	id       int64
	owner    batchOwner
	topic    topic
	slot     template.Slot
	opensAt  time.Time
	dueAt    time.Time
	at       time.Time // of the messages without an exception
	from, to user.ID
	textsTo  int64
	sent     *roaring64.Bitmap
	size     int
	// recovered are the recipients with an exception and the instants of their messages.
	recovered map[user.ID]time.Time
}

// message returns the message of the batch for the user; false if the user has none.
func (b *appBatch) message(by user.ID) (message, bool) {
	if by < b.from || by > b.to {
		return message{}, false
	}
	at, is := b.recovered[by]
	if !b.sent.Contains(uint64(by)) {
		return message{}, false
	}
	if !is {
		at = b.at
	}
	if b.topic.kind != dropTopic {
		m := message{Message: inbox.Message{ID: inbox.MessageID(b.owner.kind, b.owner.id, b.dueAt), Kind: b.owner.kind, DueAt: b.dueAt, At: at}, batch: b.id}
		if b.topic.kind == campaignTopic {
			m.campaign = campaignKey{b.owner.id, b.textsTo}
		}
		return m, true
	}
	return reminderOf(reminder.Delivered{Kind: b.owner.kind, SlotID: b.owner.id, TemplateID: b.topic.id, Slot: b.slot, OpensAt: b.opensAt,
		DueAt: b.dueAt, At: at, TextsUpTo: b.textsTo}), true
}

// collect adds the messages of the topic that reached the user, of owners with ids from first on.
func (of *topicBatches) collect(by user.ID, first int64, list *[]message) {
	for _, o := range of.owners {
		if o.id < first {
			continue
		}
		if o.kind == delivery.KindTest { // repeated tests share ranges
			for _, b := range o.batches {
				if m, is := b.message(by); is {
					*list = append(*list, m)
				}
			}
			continue
		}
		at, is := slices.BinarySearchFunc(o.batches, by, func(b *appBatch, id user.ID) int { return cmp.Compare(b.from, id) })
		if !is {
			at--
		}
		if at < 0 {
			continue
		}
		if m, is := o.batches[at].message(by); is {
			*list = append(*list, m)
		}
	}
}

// owners are the batches of a topic, by owner.
type owners []*ownBatches

// ownBatches are the batches of one owner by from, ascending.
type ownBatches struct {
	batchOwner
	batches []*appBatch
}

// put adds the batch, or replaces it, and returns by how many bytes the batches have grown.
func (o *owners) put(b *appBatch) (grown int) {
	i := slices.IndexFunc(*o, func(of *ownBatches) bool { return of.batchOwner == b.owner })
	if i < 0 {
		i = len(*o)
		*o = append(*o, &ownBatches{batchOwner: b.owner})
	}
	of := (*o)[i]
	at, _ := slices.BinarySearchFunc(of.batches, b.from, func(b *appBatch, from user.ID) int { return cmp.Compare(b.from, from) })
	for i := at; i < len(of.batches) && of.batches[i].from == b.from; i++ {
		if had := of.batches[i]; had.id == b.id {
			of.batches[i] = b
			return b.size - had.size
		}
	}
	of.batches = slices.Insert(of.batches, at, b)
	return b.size
}

// appBatchSQL returns in-app batches with sent messages.
const appBatchSQL = `
select b.id, b.kind, b.owner_id, coalesce(s.slot, 0), coalesce(s.opens_at, a.opens_at, '0001-01-01'),
    case b.kind when 'reminder' then ` + pg.SlotDueAt + ` when 'correction' then a.created_at when 'cancelled' then a.created_at when 'waitlist' then a.created_at
        when 'won' then a.created_at when 'lost' then a.created_at when 'offer' then a.created_at else b.due_at end,
    coalesce(b.finished_at, b.started_at, b.created_at), b.from_user, b.to_user, b.messages_upto, b.sent, e.users, e.instants
from batches b
left join slots s on b.kind = 'reminder' and s.id = b.owner_id
left join announcements a on b.kind in ` + pg.Announced + ` and a.id = b.owner_id
left join lateral (select array_agg(user_id) as users, array_agg(last_at) as instants
    from exceptions e where e.batch_id = b.id and e.outcome not in ('skipped', 'expired')) e on true
where b.channel = 0 and b.sent is not null and (b.kind in ('campaign', 'test') or coalesce(s.id, a.id) is not null) and `

// topicSQL selects the batches of a topic $1.
var topicSQL = map[int16]string{
	dropTopic:     appBatchSQL + `b.template_id = $1 and (b.kind = 'reminder' or b.kind in ` + pg.Announced + `)`,
	campaignTopic: appBatchSQL + `b.kind = 'campaign' and b.owner_id = $1`,
	testTopic:     appBatchSQL + `b.kind = 'test' and b.owner_id >= $1`,
}

// batches returns the batches of the topic, or those among ids.
func (m *inboxMemory) batches(ctx context.Context, t topic, ids []int64) (list []*appBatch, err error) {
	sql, arg := topicSQL[t.kind], any(t.id)
	if ids != nil {
		sql, arg = appBatchSQL+`b.id = any($1)`, ids
	}
	err = m.db.PlannedOnce(ctx, sql, []any{arg}, func(rows pgx.Rows) error {
		for rows.Next() {
			b := &appBatch{topic: t, sent: roaring64.New()}
			var sent []byte
			var users []user.ID
			var instants []time.Time
			if err := rows.Scan(&b.id, &b.owner.kind, &b.owner.id, &b.slot, &b.opensAt, &b.dueAt, &b.at, &b.from, &b.to, &b.textsTo, &sent, &users, &instants); err != nil {
				return err
			}
			if _, err := b.sent.FromUnsafeBytes(sent); err != nil { // which are kept
				return err
			}
			for i, id := range users {
				if b.recovered == nil {
					b.recovered = map[user.ID]time.Time{}
				}
				b.recovered[id] = instants[i]
			}
			const batch, exception = 400, 48 // bytes, about
			b.size = batch + len(sent) + exception*len(users)
			list = append(list, b)
		}
		return rows.Err()
	})
	return list, pg.Translate(err)
}
