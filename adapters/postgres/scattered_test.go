package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres"
	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// A statement as a store sent it.
type statement struct {
	sql  string
	args []any
}

// recorder is a tracer that keeps the statements that read users or batches, or all.
type recorder struct {
	all  bool
	mu   sync.Mutex
	list []statement
}

func (r *recorder) keep(sql string, args []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all || strings.Contains(sql, "users") || strings.Contains(sql, "batches") {
		r.list = append(r.list, statement{sql, args})
	}
}

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	r.keep(d.SQL, d.Args)
	return ctx
}
func (*recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (*recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (r *recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	r.keep(d.SQL, d.Args)
}
func (*recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// planNode is a step of a plan in PostgreSQL's words.
type planNode struct {
	Relation  string  `json:"Relation Name"`
	Index     string  `json:"Index Name"`
	Rows      float64 `json:"Actual Rows"`
	Loops     float64 `json:"Actual Loops"`
	Filtered  float64 `json:"Rows Removed by Filter"`
	Rechecked float64 `json:"Rows Removed by Index Recheck"`
	Plans     []planNode
}

// read adds up the rows of each table, and entries of its indexes, that the plan looked at.
func (n planNode) read(of map[string]float64) {
	name := n.Relation
	if name == "" {
		name, _, _ = strings.Cut(n.Index, "_")
	}
	of[name] += (n.Rows + n.Filtered + n.Rechecked) * n.Loops
	for _, p := range n.Plans {
		p.read(of)
	}
}

// TestScatteredRecipientsAreAskedForByTheirIds: the ids of a batch's 40 users are 500 apart. All
// users between them have opted out of all channels, have quiet hours, and were sent another
// campaign of the shop. A lease, the recipients' contacts, quiet hours, frequency caps and
// missing users read about as many rows as the batch has recipients, not all rows between the
// first and the last recipient.
func TestScatteredRecipientsAreAskedForByTheirIds(t *testing.T) {
	const recipients, apart = 40, 500
	w := pgtest.New(t)
	seen := &recorder{}
	db, err := postgres.Open(t.Context(), w.DB.Pool.Config().ConnString(), postgres.Options{Log: slog.New(slog.DiscardHandler), Tracer: seen})
	w.Must(err)
	t.Cleanup(db.Close)
	var ids []user.ID
	for i := range recipients {
		ids = append(ids, user.ID(1+i*apart))
	}
	w.Exec(`insert into users (id, name, email, phone, opt_outs, quiet_from, quiet_to)
		select i, 'u', 'u' || i || '@example.com', '+49151' || i, 31, 60, 120 from generate_series(1, $1::int) i`, recipients*apart)
	w.Shops(10)
	w.Exec(`insert into campaign_limits (shop_number, per_day) values (10, 1)`)
	w.Fill("campaigns", "generate_series(1, 2)", pgtest.Row{"shop_number": 10, "state": "running", "started_at": pgtest.SQL("now()")})
	w.Exec(`insert into notice_runs (template_id, days, due_at) values ($1, 1, now())`, w.Published(time.Hour).ID)
	// The other campaign's batches of ten neighbours each.
	w.Fill("batches", fmt.Sprintf("generate_series(0, %d - 1) i", recipients*apart/10), pgtest.Row{"kind": "campaign", "from_user": pgtest.SQL("1 + 10 * i"),
		"to_user": pgtest.SQL("10 + 10 * i"), "due_count": 10, "sent": []byte{}, "state": "done", "started_at": pgtest.SQL("now()")})
	for kind, owner := range map[delivery.Kind]int{delivery.KindReminder: 1, delivery.KindCampaign: 65, delivery.KindNotice: 1} {
		for c := range delivery.Channels {
			w.Insert("batches", pgtest.Row{"kind": kind, "owner_id": owner, "channel": c, "from_user": ids[0], "to_user": ids[recipients-1],
				"due": pgtest.Bitmap(ids...), "due_count": recipients})
		}
	}
	w.Exec(`vacuum analyze users`)
	w.Exec(`vacuum analyze batches`)

	store := deliverydb.NewBatches(db)
	campaigns, notices := campaignsdb.NewCampaigns(db, audiencedb.NewSegments(db)), couponsdb.NewNotices(db)
	for _, c := range delivery.AllChannels() {
		for range 3 {
			l, err := store.LeaseNext(t.Context(), c, time.Minute)
			w.Must(err)
			b := l.Batch()
			if len(b.OptedOut) != recipients {
				t.Errorf("%s, %s: %d have opted out", b.Subject.Kind, c, len(b.OptedOut))
			}
			for _, named := range []bool{false, true} {
				if _, err := store.Recipients(t.Context(), c, b.Left, named); err != nil && c != delivery.WebPush {
					t.Fatal(err)
				}
			}
			switch b.Subject.Kind {
			case delivery.KindCampaign:
				f, err := campaigns.Facts(t.Context(), b)
				if w.Must(err); len(f.Quiet) != recipients || len(f.Deleted) != 0 {
					t.Errorf("%d sleep, %d are gone", len(f.Quiet), len(f.Deleted))
				}
			case delivery.KindNotice:
				r, err := notices.Readers(t.Context(), b.Owner, b.Left)
				if w.Must(err); len(r.Quiet) != recipients {
					t.Errorf("%d sleep", len(r.Quiet))
				}
			}
		}
	}
	asked := 0
	for _, s := range seen.list {
		read := readBy(t, w, s)
		if read["users"] > 0 {
			asked++
		}
		// Entry and row, and batches of which there are few.
		if read["users"] > 2*recipients || read["batches"] > 4*recipients {
			t.Errorf("read %v for %d recipients:\n%s", read, recipients, s.sql)
		}
	}
	if asked < 3*delivery.Channels {
		t.Errorf("%d statements asked for users", asked)
	}
}

// readBy returns how many rows of each table the statement reads when all
// batches are ready again.
func readBy(t *testing.T, w *pgtest.Fixture, s statement) map[string]float64 {
	t.Helper()
	tx, err := w.SQL.Begin(t.Context())
	w.Must(err)
	defer func() { w.Must(tx.Rollback(t.Context())) }()
	_, err = tx.Exec(t.Context(), `update batches set state = 'ready', lease_token = null, lease_until = null where kind <> 'campaign' or owner_id = 2`)
	w.Must(err)
	_, err = tx.Exec(t.Context(), `set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off`)
	w.Must(err)
	return readIn(t, tx, s)
}

// readIn returns how many rows of each table the statement reads in a transaction.
func readIn(t *testing.T, tx pgx.Tx, s statement) map[string]float64 {
	t.Helper()
	var out []byte
	if err := tx.QueryRow(t.Context(), `explain (analyze, format json) `+s.sql, s.args...).Scan(&out); err != nil {
		t.Fatal(fmt.Errorf("%w: %s", err, s.sql))
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal(out, &plans); err != nil {
		t.Fatal(err)
	}
	read := map[string]float64{}
	plans[0].Plan.read(read)
	return read
}
