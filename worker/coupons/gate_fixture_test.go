package coupons_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redis"
	"dropbell/adapters/redisgate"
	"dropbell/app"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/pause"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// gateFixture is a claim gate with its surroundings: two nodes that decide, two nodes that
// write, keepers, a real Redis and a real database.
type gateFixture struct {
	*testing.T
	sql     *pgxpool.Pool
	db      *postgres.DB
	client  goredis.UniversalClient
	service *template.Service
	store   couponsdb.Gates
	gates   []*redisgate.Gate
	keepers []*gate.Keeper
	writers []*gate.Writer
	stream  redisgate.Stream
	shards  int
}

// facts reads the gate's data directly from the database, without the cache of a web node.
type facts struct {
	couponsdb.Gates
	dropsdb.Templates
}

func (r *gateFixture) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// newGateFixture starts everything on a Redis; shards is how a stock is divided.
func newGateFixture(t *testing.T, redisURL string, shards int) *gateFixture {
	t.Helper()
	return gateFixtureOn(t, localstack.Database(t), redisURL, shards)
}

// gateFixtureOn starts everything on a database and a Redis that are there.
func gateFixtureOn(t *testing.T, url, redisURL string, shards int) *gateFixture {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	r := &gateFixture{T: t, shards: shards}
	var err error
	r.db, err = postgres.Open(ctx, url, postgres.Options{AppName: "test", MaxConns: 24})
	r.must(err)
	t.Cleanup(r.db.Close)
	r.sql = r.db.Pool // which saves the server a session
	r.client, err = redis.Open(redisURL)
	r.must(err)
	t.Cleanup(func() { r.client.Close() })
	r.store = couponsdb.NewGates(r.db)
	r.service = &template.Service{Store: dropsdb.NewTemplates(r.db), Now: app.Clock}
	r.stream = redisgate.NewStream(r.client, "looker")
	for i := range 2 {
		r.gates = append(r.gates, redisgate.New(r.client, facts{r.store, dropsdb.NewTemplates(r.db)}, redisgate.Options{}))
		w := &gate.Writer{Stream: redisgate.NewStream(r.client, fmt.Sprint("writer-", i)), Recorder: couponsdb.NewGateRecorder(r.db)}
		r.writers = append(r.writers, w)
		r.keepers = append(r.keepers, &gate.Keeper{Store: r.store, Shards: redisgate.NewShards(r.client), Writer: w, Now: app.Clock,
			Divide: func(int64, int) int { return shards }, Built: func(_ int64, reason string) { t.Logf("keeper %d built shards: %s", i, reason) }})
	}
	return r
}

// run keeps writers and keepers running until the test ends. Their failures are expected while
// the test has stopped Redis; the effects of a failure are checked by the test.
func (r *gateFixture) run() {
	ctx, stop := context.WithCancel(context.WithoutCancel(r.Context()))
	var all sync.WaitGroup
	for i := range r.writers {
		all.Go(func() {
			for ctx.Err() == nil {
				if r.writeOnce(ctx, i) == 0 {
					pause.For(ctx, 20*time.Millisecond)
				}
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				_ = r.keepers[i].Sweep(ctx)
				pause.For(ctx, 50*time.Millisecond)
			}
		})
		all.Go(func() {
			k := r.keepers[i]
			for ctx.Err() == nil {
				_ = redisgate.Listen(ctx, r.client, redisgate.Calls{Deaf: k.CallAll, Unwritten: k.Call,
					Missing: func(id int64) { _ = k.Rescue(ctx, id) }})
			}
		})
	}
	r.Cleanup(func() { stop(); all.Wait() })
}

func (r *gateFixture) writeOnce(ctx context.Context, writer int) (done int) {
	drops, err := r.store.Active(ctx)
	if err != nil {
		return 0
	}
	for id, shards := range drops {
		for shard := range shards {
			n, _ := r.writers[writer].Step(ctx, id, shard)
			done += n
		}
	}
	return done
}

// Claim sends a claim to one of the nodes, and repeats it while the shards are being filled, as
// the API requires of clients.
func (r *gateFixture) Claim(ctx context.Context, q claim.Request) (claim.Claim, error) {
	for deadline := time.Now().Add(20 * time.Second); ; {
		c, err := r.gates[rand.IntN(len(r.gates))].Claim(ctx, q)
		if !errors.Is(err, claim.ErrOverloaded) || time.Now().After(deadline) || ctx.Err() != nil {
			return c, err
		}
		pause.For(ctx, 2*time.Millisecond)
	}
}

func gateSpec(opens, closes time.Duration) template.Spec {
	now := app.Clock().Truncate(time.Second)
	return template.Spec{ShopNumber: 10, Name: "Half price", Kind: template.AmountOff, AmountOff: 1000, Currency: "CNY",
		Target: template.WholeShop, Stock: 100, PerUserLimit: 1, OpensAt: now.Add(opens), ClosesAt: now.Add(closes),
		ValidHours: 48, Obtain: template.ByClaim, ClaimMode: template.Gate}
}

// Open implements claimtest.Harness.
func (r *gateFixture) Open(stock int64, limit int, change func(*template.Spec)) template.Template {
	r.Helper()
	t := r.publish(stock, limit, change)
	r.tend(t.ID)
	return t
}

// published is an open drop whose event only a worker gets.
func (r *gateFixture) published(stock int64, limit int) template.Template {
	r.Helper()
	return r.publish(stock, limit, nil)
}

func (r *gateFixture) publish(stock int64, limit int, change func(*template.Spec)) template.Template {
	r.Helper()
	s := gateSpec(-time.Minute, time.Hour)
	s.Stock, s.PerUserLimit = stock, limit
	if change != nil {
		change(&s)
	}
	opens, closes := s.OpensAt, s.ClosesAt
	later := gateSpec(time.Hour, 2*time.Hour)
	s.OpensAt, s.ClosesAt = later.OpensAt, later.ClosesAt
	t, err := r.service.Create(r.Context(), staff.System(), s, "")
	r.must(err)
	_, err = r.service.Do(r.Context(), staff.System(), t.ID, 0, template.Publishing, "")
	r.must(err)
	r.exec(`update templates set opens_at = $2, closes_at = $3, version = version + 1 where id = $1`, t.ID, opens, closes)
	t, err = r.service.Template(r.Context(), staff.System(), t.ID)
	r.must(err)
	return t
}

func (r *gateFixture) exec(sql string, args ...any) {
	r.Helper()
	_, err := r.sql.Exec(r.Context(), sql, args...)
	r.must(err)
}

// tend reconciles as the event of a change does, on all nodes.
func (r *gateFixture) tend(id int64) {
	r.Helper()
	r.eventually("the gate is tended", func() error { return r.keepers[0].Reconcile(r.Context(), id) })
	for _, g := range r.gates {
		g.Forget(id)
	}
}

// eventually polls until do returns nil, as long as a slow machine may take.
func (r *gateFixture) eventually(what string, do func() error) {
	r.Helper()
	for end := time.Now().Add(localstack.Patience(r.T)); ; {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			r.Fatalf("%s: still %v", what, err)
		}
		pause.For(context.Background(), 5*time.Millisecond)
	}
}

// Draft implements claimtest.Harness.
func (r *gateFixture) Draft() template.Template {
	t, err := r.service.Create(r.Context(), staff.System(), gateSpec(time.Hour, 2*time.Hour), "")
	r.must(err)
	return t
}

// Do implements claimtest.Harness.
func (r *gateFixture) Do(id int64, tr template.Transition) {
	r.Helper()
	_, err := r.service.Do(r.Context(), staff.System(), id, 0, tr, "test")
	r.must(err)
	r.tend(id)
}

// Raise implements claimtest.Harness.
func (r *gateFixture) Raise(id, stock int64) {
	r.Helper()
	t, err := r.service.Template(r.Context(), staff.System(), id)
	r.must(err)
	s := t.Spec
	s.Stock = stock
	_, err = r.service.Edit(r.Context(), staff.System(), id, template.Edition{Version: t.Version, Spec: s})
	r.must(err)
	r.tend(id)
}

// Doors implements claimtest.Harness. A drop gets its first doors before it is published, and so before its gate is
// built: here the gate is built anew.
func (r *gateFixture) Doors(id int64, doors []template.Door) {
	r.Helper()
	r.saveDoors(id, doors)
	r.tend(id)
}

// saveDoors sets the doors in the database alone.
func (r *gateFixture) saveDoors(id int64, doors []template.Door) {
	r.Helper()
	t, err := r.service.Template(r.Context(), staff.System(), id)
	r.must(err)
	if len(t.Doors) == 0 {
		r.exec(`update gates set state = 'building', lease_until = clock_timestamp() where template_id = $1`, id)
	}
	t.Doors = doors
	_, err = dropsdb.NewTemplates(r.db).SaveDoors(r.Context(), t, nil, staff.Entry{Actor: staff.System(), Action: "template.doors", ObjectKind: "template"})
	r.must(err)
}

// Household implements claimtest.Harness.
func (r *gateFixture) Household(by user.ID, household string) {
	r.Helper()
	r.exec(`insert into users (id, household) values ($1, $2) on conflict (id) do update set household = excluded.household`, by, household)
}

// settled waits until nothing is being written.
func (r *gateFixture) settled(id int64) {
	r.Helper()
	r.eventually("everything is written", func() error {
		l, err := r.ledger(id)
		switch {
		case errors.Is(err, template.ErrNotFound):
			return nil // no claim of a missing drop is being written
		case err == nil && l.Writing != 0:
			return fmt.Errorf("%d are being written", l.Writing)
		}
		return err
	})
}

func (r *gateFixture) ledger(id int64) (gate.Ledger, error) {
	plan, err := r.store.Plan(r.Context(), id)
	if err != nil {
		return gate.Ledger{}, err
	}
	shards, err := redisgate.NewShards(r.client).Look(r.Context(), id, plan.Shards)
	if err == nil && plan.State == gate.Building {
		err = errors.New("the gate is being built")
	}
	return plan.Ledger(shards), err
}

// Coupons implements claimtest.Harness.
func (r *gateFixture) Coupons(id int64) []claim.Claim {
	r.Helper()
	r.settled(id)
	rows, err := r.sql.Query(r.Context(), `select claim_id, template_id, user_id, 'issued', id, '', issued_at from coupons where template_id = $1 order by id`, id)
	r.must(err)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[claim.Claim])
	r.must(err)
	return list
}

// Balance implements claimtest.Harness.
func (r *gateFixture) Balance(id int64) (total, issued int64) {
	r.Helper()
	r.settled(id)
	var counted, rows, returned int64
	r.must(r.sql.QueryRow(r.Context(), `select stock, issued, returned, (select coalesce(sum(issued), 0) from claim_counts where template_id = $1),
		(select count(*) from coupons where template_id = $1) from templates where id = $1`, id).Scan(&total, &issued, &returned, &counted, &rows))
	if counted != issued+returned || rows != issued+returned {
		r.Errorf("template %d: %d issued, %d counted per user, %d coupons", id, issued, counted, rows)
	}
	var l gate.Ledger
	r.eventually("the ledger can be read", func() (err error) { l, err = r.ledger(id); return err })
	if l.Difference != 0 || l.Total != l.OnSale+l.Writing+l.Issued || l.Total != total || l.Issued != issued {
		r.Errorf("template %d: ledger %+v", id, l)
	}
	return total, issued
}

// Outcome implements claimtest.Later.
func (r *gateFixture) Outcome(by user.ID, id claim.ID) (c claim.Claim) {
	r.Helper()
	r.eventually("the claim is decided", func() (err error) {
		if c, err = r.gates[1].ByID(r.Context(), by, id); err == nil && c.State == claim.Accepted {
			err = errors.New("accepted")
		}
		return err
	})
	return c
}

func itoa(n int64) string { return fmt.Sprint(n) }

func userID(n int64) user.ID { return user.ID(n) }
