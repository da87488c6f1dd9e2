package coupons

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/pass"
	"dropbell/domain/review"
)

const (
	// signsEvery is how often a process stores the signs that wait: a crash loses these.
	signsEvery = 250 * time.Millisecond
	// signsGroup is how many signs one statement stores.
	signsGroup = 5000
	// signsQueue is how many signs may wait while the database does not answer: 40 MB. Further signs
	// are lost and counted.
	signsQueue = 200_000
	// signsTimeout bounds one statement.
	signsTimeout = 5 * time.Second
)

// SignsReport is told what becomes of signs. Each function may be nil.
type SignsReport struct {
	// Lost is called with the number of signs that were lost because too many wait.
	Lost func(n int)
	// Failed is called after every statement that failed, with the number of signs that wait.
	Failed func(err error, waiting int)
}

// Signs stores the signs of claims of protected drops in groups, after the claims were answered. A
// claim waits for a short lock alone: hashing and storing are done by one goroutine.
type Signs struct {
	db   *pg.DB
	keys pass.Keys
	SignsReport

	mu      sync.Mutex
	waiting []review.Tap
	refused map[refusedClaims]int64
	closed  bool
	stop    chan struct{}
	stopped chan struct{}
}

// refusedClaims are counted together. door is -1 for claims that are counted for the protection of the drop.
type refusedClaims struct {
	templateID int64
	door       int
	code       string
}

const protects = -1

// NewSigns starts to store signs; close it. keys hash networks and agents.
func NewSigns(db *pg.DB, keys pass.Keys, report SignsReport) *Signs {
	s := &Signs{db: db, keys: keys, SignsReport: report, refused: map[refusedClaims]int64{}, stop: make(chan struct{}), stopped: make(chan struct{})}
	go s.run()
	return s
}

// Note queues the signs of a claim that was accepted. Signs of a claim whose pass is not valid for
// its drop are not stored: the drop is not protected.
func (s *Signs) Note(t review.Tap) {
	s.mu.Lock()
	full := s.closed || len(s.waiting) >= signsQueue
	if !full {
		s.waiting = append(s.waiting, t)
	}
	s.mu.Unlock()
	if full && s.Lost != nil {
		s.Lost(1)
	}
}

// Refused counts a refused claim of a protected drop.
func (s *Signs) Refused(templateID int64, code string) {
	s.mu.Lock()
	s.refused[refusedClaims{templateID, protects, code}]++
	s.mu.Unlock()
}

// RefusedAt counts a refused claim of a drop with doors; see [claim.Doors].
func (s *Signs) RefusedAt(templateID int64, door int, code string) {
	s.mu.Lock()
	s.refused[refusedClaims{templateID, door, code}]++
	s.mu.Unlock()
}

// Close stores what waits, in one attempt, and stops.
func (s *Signs) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first {
		close(s.stop)
	}
	<-s.stopped
}

func (s *Signs) run() {
	defer close(s.stopped)
	turn := time.NewTicker(signsEvery)
	defer turn.Stop()
	for {
		select {
		case <-turn.C:
			s.flush()
		case <-s.stop:
			s.flush()
			return
		}
	}
}

// flush stores the waiting signs. Signs that could not be stored wait again.
func (s *Signs) flush() {
	s.mu.Lock()
	taps := s.waiting
	s.waiting = nil
	var refused map[refusedClaims]int64
	if len(s.refused) > 0 {
		refused, s.refused = s.refused, map[refusedClaims]int64{}
	}
	s.mu.Unlock()
	for len(taps) > 0 {
		part := taps[:min(signsGroup, len(taps))]
		if err := s.within(func(ctx context.Context) error { return s.store(ctx, part) }); err != nil {
			s.again(taps, err)
			break
		}
		taps = taps[len(part):]
	}
	if len(refused) == 0 {
		return
	}
	if err := s.within(func(ctx context.Context) error { return s.count(ctx, refused) }); err != nil {
		s.mu.Lock()
		for k, n := range refused {
			s.refused[k] += n
		}
		s.mu.Unlock()
		s.again(nil, err)
	}
}

func (s *Signs) within(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), signsTimeout)
	defer cancel()
	return do(ctx)
}

func (s *Signs) again(taps []review.Tap, err error) {
	s.mu.Lock()
	s.waiting = append(taps, s.waiting...)
	lost := max(0, len(s.waiting)-signsQueue)
	s.waiting = s.waiting[:len(s.waiting)-lost]
	waiting := len(s.waiting)
	s.mu.Unlock()
	if lost > 0 && s.Lost != nil {
		s.Lost(lost)
	}
	if s.Failed != nil {
		s.Failed(err, waiting)
	}
}

// signsSQL returns nothing. A claim's signs are stored once.
const signsSQL = `
insert into claim_signs (template_id, user_id, claim_id, at, network, agent, program, way, passed_at, opened_ms)
select * from unnest(@templates::bigint[], @users::bigint[], @claims::bigint[], @at::timestamptz[], @networks::bigint[], @agents::bigint[], @programs::bool[],
    @ways::smallint[], @passed::timestamptz[], @opened::bigint[])
on conflict do nothing`

func (s *Signs) store(ctx context.Context, taps []review.Tap) error {
	n := len(taps)
	args := struct {
		templates, users, claims, networks, agents, opened []int64
		at, passed                                         []time.Time
		programs                                           []bool
		ways                                               []int16
	}{make([]int64, 0, n), make([]int64, 0, n), make([]int64, 0, n), make([]int64, 0, n), make([]int64, 0, n), make([]int64, 0, n),
		make([]time.Time, 0, n), make([]time.Time, 0, n), make([]bool, 0, n), make([]int16, 0, n)}
	hashed := map[string]int64{} // the agents and networks of a group repeat
	hash := func(kind, text string) int64 {
		h, known := hashed[kind+text]
		if !known {
			h = s.keys.Sign(kind, text)
			hashed[kind+text] = h
		}
		return h
	}
	for _, t := range taps {
		p, err := s.keys.Check(t.Pass, t.UserID, t.TemplateID, t.At)
		if err != nil {
			continue
		}
		byUser := t.Address.IsValid()
		args.templates, args.users, args.claims = append(args.templates, t.TemplateID), append(args.users, int64(t.UserID)), append(args.claims, t.ClaimID)
		args.at, args.passed = append(args.at, t.At), append(args.passed, p.IssuedAt)
		args.networks, args.agents = append(args.networks, hash("network", review.Network(t.Address))), append(args.agents, hash("agent", t.Agent))
		args.programs = append(args.programs, byUser && review.Program(t.Agent))
		args.ways, args.opened = append(args.ways, int16(p.Way)), append(args.opened, p.Opened.Milliseconds())
	}
	if len(args.templates) == 0 {
		return nil
	}
	_, err := s.db.Pool.Exec(ctx, signsSQL, pgx.StrictNamedArgs{"templates": args.templates, "users": args.users, "claims": args.claims, "at": args.at,
		"networks": args.networks, "agents": args.agents, "programs": args.programs, "ways": args.ways, "passed": args.passed, "opened": args.opened})
	return pg.Translate(err)
}

func (s *Signs) count(ctx context.Context, refused map[refusedClaims]int64) error {
	keys := slices.SortedFunc(maps.Keys(refused), func(a, b refusedClaims) int { // in one order, so that two processes cannot deadlock
		return cmp.Or(cmp.Compare(a.templateID, b.templateID), cmp.Compare(a.door, b.door), cmp.Compare(a.code, b.code))
	})
	var templates, doors, claims [2][]int64
	var codes [2][]string
	for _, k := range keys {
		i := 0
		if k.door != protects {
			i = 1
		}
		templates[i], doors[i], codes[i], claims[i] = append(templates[i], k.templateID), append(doors[i], int64(k.door)), append(codes[i], k.code), append(claims[i], refused[k])
	}
	b := &pgx.Batch{} // one transaction: a failed attempt counts nothing
	b.Queue(`insert into claim_refusals as r (template_id, code, claims) select * from unnest($1::bigint[], $2::text[], $3::bigint[])
		on conflict (template_id, code) do update set claims = r.claims + excluded.claims`, templates[0], codes[0], claims[0])
	b.Queue(`insert into door_refusals as r (template_id, door, code, claims) select * from unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[])
		on conflict (template_id, door, code) do update set claims = r.claims + excluded.claims`, templates[1], doors[1], codes[1], claims[1])
	return pg.Translate(s.db.Pool.SendBatch(ctx, b).Close())
}
