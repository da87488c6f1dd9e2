package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookEvery is how often a replica is compared with the primary.
	lookEvery = 500 * time.Millisecond
	// lookWithin bounds the questions of one comparison to each of the two.
	lookWithin = time.Second
	// mostPositions bounds the positions of the primary that are remembered until
	// the replica has replayed them. Above the bound every second position is
	// dropped.
	mostPositions = 1024
)

// A Position is a position in the write-ahead log of the primary (LSN). A replica
// that has replayed a position shows every change that was committed before this
// position.
type Position uint64

// Everywhere is behind every position: no replica has replayed it.
const Everywhere = ^Position(0)

// ParsePosition reads a position as [Position.String] and PostgreSQL write it.
func ParsePosition(s string) (Position, error) {
	var high, low uint32
	if _, err := fmt.Sscanf(s, "%X/%X", &high, &low); err != nil {
		return 0, fmt.Errorf("a position of the log must have the form 16/B374D848: %w", err)
	}
	return Position(high)<<32 | Position(low), nil
}

func (p Position) String() string { return fmt.Sprintf("%X/%X", uint32(p>>32), uint32(p)) }

// ReplicaState says whether reports read a replica.
type ReplicaState struct {
	// Usable is false while reports read the primary.
	Usable bool
	// Lag is the maximum age of the state that the replica shows. Lag is
	// undefined while CaughtUp is false.
	Lag time.Duration
	// CaughtUp is whether the replica has replayed anything that the primary
	// wrote since this process began to compare them.
	CaughtUp bool
	// Reason says why the replica is not usable, for the log.
	Reason string
}

// A Replica is a streaming standby of the primary. Reports are read from the
// replica while its lag is small enough. Lag is measured by this process's clock
// alone: the process notes the primary's position twice a second, and the replica
// shows at least the state of the newest noted position that it has replayed. So
// a replica without changes to replay has no lag.
type Replica struct {
	db, primary *DB
	most        time.Duration
	log         *slog.Logger

	mu        sync.Mutex
	state     ReplicaState
	replayed  Position
	positions []notedPosition // ascending; the first may be replayed, no other
	// live is canceled by lost when the replica is no longer usable. Reports that
	// wait for the replica then end and are read from the primary.
	live context.Context
	lost context.CancelFunc

	fromReplica, fromPrimary atomic.Int64
}

type notedPosition struct {
	at  time.Time
	pos Position
}

// OpenReplica returns the replica at url of the database primary. OpenReplica
// does not connect. Reports use the replica only after [Replica.Watch] has
// measured that its lag is not above most.
func OpenReplica(ctx context.Context, primary *DB, url string, most time.Duration, o Options) (*Replica, error) {
	db, err := Open(ctx, url, o)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_REPLICA_URL: %w", err)
	}
	r := &Replica{db: db, primary: primary, most: most, log: db.log, state: ReplicaState{Reason: "not looked at yet"}}
	r.live, r.lost = context.WithCancel(context.Background())
	r.lost()
	return r, nil
}

// Close closes the connections to the replica.
func (r *Replica) Close() { r.lost(); r.db.Close() }

// State returns the result of the last comparison with the primary.
func (r *Replica) State() ReplicaState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Reports returns the number of requests whose reports began to read the replica,
// and the number of requests whose reports read the primary instead.
func (r *Replica) Reports() (replica, primary int64) {
	return r.fromReplica.Load(), r.fromPrimary.Load()
}

// Watch compares the replica with the primary until ctx ends.
func (r *Replica) Watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		r.Look(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Look compares the replica with the primary once.
func (r *Replica) Look(ctx context.Context) {
	at := time.Now()
	primary, primaryErr := r.askPrimary(ctx)
	replayed, err := r.askReplica(ctx)
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	if primaryErr == nil {
		r.note(notedPosition{at, primary.pos})
	}
	if err == nil && primaryErr == nil && replayed.system != primary.system {
		err = errors.New("it is a replica of another database")
	}
	if err != nil {
		r.replayed = 0
	} else {
		r.replayed = replayed.pos
	}
	state := r.compare(err)
	was := r.state
	r.state = state
	if state.Usable && r.live.Err() != nil {
		r.live, r.lost = context.WithCancel(context.Background())
	}
	if !state.Usable {
		r.lost()
	}
	r.mu.Unlock()
	if err != nil {
		r.db.Pool.Reset() // the address may lead to another server by now
	}
	if was.Usable != state.Usable {
		r.tell(state)
	}
}

func (r *Replica) tell(s ReplicaState) {
	if s.Usable {
		r.log.Info("reports are read from the replica", "lag", s.Lag.String())
	} else {
		r.log.Warn("reports are read from the primary instead of the replica", "reason", s.Reason)
	}
}

// note remembers the primary's position.
func (r *Replica) note(p notedPosition) {
	if n := len(r.positions); n > 0 && r.positions[n-1].pos > p.pos {
		r.positions = nil // another server has become the primary
	}
	if len(r.positions) >= mostPositions {
		kept := r.positions[:0]
		for i, old := range r.positions {
			if i%2 == 0 {
				kept = append(kept, old)
			}
		}
		r.positions = kept
	}
	r.positions = append(r.positions, p)
}

// compare returns the state that the positions and the replica's answer mean.
func (r *Replica) compare(err error) ReplicaState {
	newest := -1
	for i, p := range r.positions {
		if p.pos <= r.replayed {
			newest = i
		}
	}
	if newest >= 0 {
		r.positions = r.positions[newest:]
	}
	s := ReplicaState{CaughtUp: newest >= 0}
	if s.CaughtUp {
		s.Lag = time.Since(r.positions[0].at)
	}
	switch {
	case err != nil:
		s.Reason, s.CaughtUp = err.Error(), false
	case !s.CaughtUp:
		s.Reason = "it has not caught up yet"
	case s.Lag > r.most:
		s.Reason = fmt.Sprintf("it is more than %v behind", r.most)
	default:
		s.Usable = true
	}
	return s
}

type placed struct {
	pos    Position
	system int64
}

func (r *Replica) askPrimary(ctx context.Context) (p placed, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	// A standby can have the flushed log.
	return place(ctx, r.primary, `select pg_current_wal_flush_lsn()::text, (select system_identifier from pg_control_system())`)
}

func (r *Replica) askReplica(ctx context.Context) (p placed, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	p, err = place(ctx, r.db, `select case when pg_is_in_recovery() then pg_last_wal_replay_lsn()::text else '' end,
		(select system_identifier from pg_control_system())`)
	if errors.Is(err, errNoPosition) {
		err = errors.New("its server is no standby")
	}
	return p, err
}

var errNoPosition = errors.New("no position")

func place(ctx context.Context, db *DB, sql string) (p placed, err error) {
	var text *string
	if err := db.Pool.QueryRow(ctx, sql).Scan(&text, &p.system); err != nil {
		return p, Translate(err)
	}
	if text == nil || *text == "" {
		return p, errNoPosition
	}
	p.pos, err = ParsePosition(*text)
	return p, err
}

// Position returns a place behind everything that is committed by now.
func (r *Replica) Position(ctx context.Context) (Position, error) {
	var text string
	if err := r.primary.Pool.QueryRow(ctx, `select pg_current_wal_insert_lsn()::text`).Scan(&text); err != nil {
		return Everywhere, Translate(err)
	}
	return ParsePosition(text)
}

type readingKey struct{}

// A Reading is one request whose reports may be read from a replica.
type Reading struct {
	replica *Replica
	lag     time.Duration
	used    atomic.Bool
}

// Begin returns a context in which reports are read from the replica, if the
// replica is usable and has replayed the position after. The context ends when
// the replica is no longer usable; the caller then reads again from the primary,
// in its own context. end must be called.
func (r *Replica) Begin(ctx context.Context, after Position) (_ context.Context, reading *Reading, end func()) {
	r.mu.Lock()
	state, live, reached := r.state, r.live, after <= r.replayed
	r.mu.Unlock()
	if !state.Usable || !reached {
		r.fromPrimary.Add(1)
		return ctx, &Reading{}, func() {}
	}
	r.fromReplica.Add(1)
	reading = &Reading{replica: r, lag: state.Lag}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, readingKey{}, reading))
	stop := context.AfterFunc(live, cancel)
	return ctx, reading, func() { stop(); cancel() }
}

// Again counts a request that began to read the replica and is answered by the
// primary.
func (r *Replica) Again() { r.fromPrimary.Add(1) }

// Lag returns the age of the state that the request's reports showed, and whether
// any report was read from the replica.
func (g *Reading) Lag() (lag time.Duration, used bool) { return g.lag, g.used.Load() }

// WithReplica returns the same database with reports that may be read from r.
// With nil all reports are read from the primary.
func (db *DB) WithReplica(r *Replica) *DB {
	if r == nil {
		return db
	}
	with := *db
	with.replica = r
	return &with
}

// Reports returns the database to read a report from, provided that no decision
// depends on the report. Within a context of [Replica.Begin] this is the replica,
// if db has one; otherwise db.
func (db *DB) Reports(ctx context.Context) *DB {
	if db.replica == nil {
		return db
	}
	reading, _ := ctx.Value(readingKey{}).(*Reading)
	if reading == nil || reading.replica != db.replica {
		return db
	}
	reading.used.Store(true)
	return db.replica.db
}
