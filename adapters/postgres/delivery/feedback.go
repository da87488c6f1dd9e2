package delivery

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user"
)

// Feedback stores the providers' reports. One transaction stores the reports of concurrent
// calls.
type Feedback struct {
	*pg.DB
	groups *pg.Committer[struct{}, []feedback.Report, taken]
}

// taken counts the reports of one call by result.
type taken struct{ stored, known, ignored int }

// NewFeedback starts the groups. observe may be nil.
func NewFeedback(db *pg.DB, observe func(size int, took time.Duration)) *Feedback {
	f := &Feedback{DB: db}
	// Groups are stored one at a time: two groups would wait for the rows of the same batches,
	// and reports that arrive meanwhile make the next group larger.
	cfg := pg.GroupConfig{Workers: 1, MaxGroup: 256, MaxCrowd: 2048, MaxQueue: 16384, Timeout: 15 * time.Second, Observe: observe}
	f.groups = pg.NewCommitter[struct{}](cfg, nil, f.store)
	return f
}

// Close answers everything that was accepted and stops.
func (f *Feedback) Close() { f.groups.Close() }

// Take stores the reports; see [feedback.Taker].
func (f *Feedback) Take(ctx context.Context, reports []feedback.Report) error {
	_, err := f.Count(ctx, reports)
	return err
}

// Count is [Feedback.Take] that also returns how many of the reports changed the stored
// status, and how many were ignored. A report is ignored if it names no message of an existing
// batch.
func (f *Feedback) Count(ctx context.Context, reports []feedback.Report) (feedback.Taken, error) {
	n, err := f.groups.Do(ctx, reports)
	return feedback.Taken{Stored: n.stored, Known: n.known, Ignored: n.ignored}, err
}

// addFeedbackSQL adds rows for batches that have none yet, in the order of their ids, so that
// two transactions cannot deadlock.
const addFeedbackSQL = `
insert into batch_feedback (batch_id, kind, owner_id, channel)
select b.id, b.kind, b.owner_id, b.channel from batches b
where b.id = any($1) and not exists (select from batch_feedback f where f.batch_id = b.id)
order by b.id on conflict do nothing`

// lockFeedbackSQL returns the reported sets of the batches, with the set of their recipients.
const lockFeedbackSQL = `
select f.batch_id, f.delivered, f.bounced, f.complained, f.soft, b.due from batch_feedback f join batches b on b.id = f.batch_id
where f.batch_id = any($1) order by f.batch_id for update of f`

// saveFeedbackSQL has arrays with one element for each batch.
const saveFeedbackSQL = `
update batch_feedback f set delivered = g.delivered, bounced = g.bounced, complained = g.complained, soft = g.soft,
    delivered_count = g.delivered_count, bounced_count = g.bounced_count, complained_count = g.complained_count
from unnest(@ids::bigint[], @delivered::bytea[], @bounced::bytea[], @complained::bytea[], @soft::bytea[],
    @delivered_counts::int[], @bounced_counts::int[], @complained_counts::int[])
    as g (id, delivered, bounced, complained, soft, delivered_count, bounced_count, complained_count)
where f.batch_id = g.id`

// saveReportsSQL has arrays with one element for each report; each message has at most one
// report.
const saveReportsSQL = `
insert into feedback_reports as r (batch_id, user_id, status, provider, cause, price_micros, currency, happened_at)
select batch_id, user_id, status, provider, cause, price_micros, currency, nullif(happened_at, '0001-01-01')
from unnest(@batches::bigint[], @users::bigint[], @statuses::text[], @providers::text[], @causes::text[], @prices::bigint[],
    @currencies::text[], @instants::timestamptz[])
    as g (batch_id, user_id, status, provider, cause, price_micros, currency, happened_at)
on conflict (batch_id, user_id) do update set status = excluded.status, provider = excluded.provider, cause = excluded.cause,
    price_micros = case when excluded.price_micros = 0 then r.price_micros else excluded.price_micros end,
    currency = case when excluded.price_micros = 0 then r.currency else excluded.currency end,
    happened_at = excluded.happened_at, reported_at = excluded.reported_at`

// forgetReportsSQL removes soft bounces of messages that were delivered since.
const forgetReportsSQL = `
delete from feedback_reports r using unnest($1::bigint[], $2::bigint[]) as g (batch_id, user_id)
where r.batch_id = g.batch_id and r.user_id = g.user_id`

// store stores the reports of all calls in one transaction.
func (f *Feedback) store(ctx context.Context, calls [][]feedback.Report) ([]taken, error) {
	ids := map[int64]struct{}{}
	for _, reports := range calls {
		for _, r := range reports {
			if r.Ref != (feedback.Ref{}) {
				ids[r.Ref.Batch] = struct{}{}
			}
		}
	}
	answers := make([]taken, len(calls))
	return answers, f.Tx(ctx, func(tx pgx.Tx) error {
		known, err := lockFeedback(ctx, tx, slices.Sorted(maps.Keys(ids)))
		if err != nil {
			return err
		}
		for i, reports := range calls {
			answers[i] = taken{}
			for _, r := range reports {
				known.take(r, &answers[i])
			}
		}
		return known.save(ctx, tx)
	})
}

// lockFeedback returns the reported sets of the existing batches among ids.
func lockFeedback(ctx context.Context, tx pgx.Tx, ids []int64) (*gathered, error) {
	g := &gathered{batches: map[int64]*marks{}, reports: map[feedback.Ref]feedback.Report{}, forgotten: map[feedback.Ref]struct{}{}}
	if len(ids) == 0 {
		return g, nil
	}
	both := &pgx.Batch{}
	both.Queue(addFeedbackSQL, ids)
	both.Queue(lockFeedbackSQL, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var id int64
			var sets [4][]byte
			var due []byte
			if err := rows.Scan(&id, &sets[0], &sets[1], &sets[2], &sets[3], &due); err != nil {
				return err
			}
			m, err := decodeMarks(sets, due)
			if err != nil {
				return err
			}
			g.batches[id] = m
		}
		return rows.Err()
	})
	return g, tx.SendBatch(ctx, both).Close()
}

// marks are the reported sets of one batch's messages.
type marks struct {
	pg.Reported
	due     *roaring64.Bitmap
	changed bool
}

func decodeMarks(reported [4][]byte, due []byte) (m *marks, err error) {
	m = &marks{}
	if m.Reported, err = pg.DecodeReported(reported); err != nil {
		return nil, err
	}
	m.due, err = pg.DecodeSet(due)
	return m, err
}

// mark stores a status that replaces the previous status of the message.
func (m *marks) mark(id user.ID, s feedback.Status) {
	n := uint64(id)
	m.changed = true
	m.Soft.Remove(n)
	switch s {
	case feedback.SoftBounced:
		m.Soft.Add(n)
	case feedback.Delivered:
		m.Delivered.Add(n)
	case feedback.Bounced:
		m.Delivered.Remove(n)
		m.Bounced.Add(n)
	case feedback.Complained: // it was read, whatever a server said
		m.Bounced.Remove(n)
		m.Delivered.Add(n)
		m.Complained.Add(n)
	}
}

// gathered holds the changes of a group of reports.
type gathered struct {
	batches   map[int64]*marks
	reports   map[feedback.Ref]feedback.Report
	forgotten map[feedback.Ref]struct{}
	addressed addressed
}

// take notes one report and counts it.
func (g *gathered) take(r feedback.Report, n *taken) {
	m, ok := g.batches[r.Ref.Batch]
	if !ok || !r.Status.Valid() || !m.due.Contains(uint64(r.Ref.User)) {
		n.ignored++
		// The report still shows that no mail reaches the address, or that no mail is wanted
		// there.
		if r.Status == feedback.Bounced || r.Status == feedback.Complained {
			g.addressed.note(r)
		}
		return
	}
	before := m.Of(r.Ref.User)
	replaces := r.Status.Replaces(before)
	if !replaces && (r.Status != before || r.PriceMicros == 0) {
		n.known++
		return
	}
	if replaces {
		m.mark(r.Ref.User, r.Status)
		g.addressed.note(r)
	}
	n.stored++
	if r.Status == feedback.Delivered && r.PriceMicros == 0 {
		if before == feedback.SoftBounced {
			delete(g.reports, r.Ref)
			g.forgotten[r.Ref] = struct{}{}
		}
		return
	}
	if earlier, ok := g.reports[r.Ref]; ok && r.PriceMicros == 0 {
		r.PriceMicros, r.Currency = earlier.PriceMicros, earlier.Currency
	}
	g.reports[r.Ref] = r
}

// save writes the changes.
func (g *gathered) save(ctx context.Context, tx pgx.Tx) error {
	all := &pgx.Batch{}
	if err := g.queueSets(all); err != nil {
		return err
	}
	if len(g.forgotten) > 0 {
		var batches, users []int64
		for ref := range g.forgotten {
			batches, users = append(batches, ref.Batch), append(users, int64(ref.User))
		}
		all.Queue(forgetReportsSQL, batches, users)
	}
	g.queueReports(all)
	g.addressed.queue(all)
	if all.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, all).Close()
}

func (g *gathered) queueSets(all *pgx.Batch) error {
	var ids []int64
	var sets [4][][]byte
	var counts [3][]int32
	for id, m := range g.batches {
		if !m.changed {
			continue
		}
		ids = append(ids, id)
		for i, set := range []*roaring64.Bitmap{m.Delivered, m.Bounced, m.Complained, m.Soft} {
			var b []byte
			if !set.IsEmpty() {
				set.RunOptimize()
				var err error
				if b, err = set.ToBytes(); err != nil {
					return err
				}
			}
			sets[i] = append(sets[i], b)
			if i < len(counts) {
				counts[i] = append(counts[i], int32(set.GetCardinality()))
			}
		}
		bounced := &counts[1][len(counts[1])-1]
		*bounced += int32(m.Soft.GetCardinality()) // not delivered either
	}
	if len(ids) > 0 {
		all.Queue(saveFeedbackSQL, pgx.StrictNamedArgs{"ids": ids, "delivered": sets[0], "bounced": sets[1], "complained": sets[2], "soft": sets[3],
			"delivered_counts": counts[0], "bounced_counts": counts[1], "complained_counts": counts[2]})
	}
	return nil
}

func (g *gathered) queueReports(all *pgx.Batch) {
	n := len(g.reports)
	if n == 0 {
		return
	}
	batches, users, statuses := make([]int64, 0, n), make([]int64, 0, n), make([]string, 0, n)
	providers, causes, currencies := make([]string, 0, n), make([]string, 0, n), make([]string, 0, n)
	prices, instants := make([]int64, 0, n), make([]time.Time, 0, n)
	for ref, r := range g.reports {
		batches, users, statuses = append(batches, ref.Batch), append(users, int64(ref.User)), append(statuses, string(r.Status))
		// The cause is cleaned again, whatever its source did: providers' texts must not
		// contain addresses.
		providers, causes = append(providers, r.Provider), append(causes, delivery.DetailOf(r.Cause))
		prices, currencies, instants = append(prices, r.PriceMicros), append(currencies, delivery.DetailOf(r.Currency)), append(instants, r.At)
	}
	all.Queue(saveReportsSQL, pgx.StrictNamedArgs{"batches": batches, "users": users, "statuses": statuses, "providers": providers,
		"causes": causes, "prices": prices, "currencies": currencies, "instants": instants})
}
