package app

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
)

const (
	// enterEvery is how often a process renews its row in the list of running processes.
	enterEvery = workdb.ProcessGoneAfter / 3
	// othersFor is the largest age of the number of processes by which limits are divided while
	// Redis does not answer.
	othersFor = 500 * time.Millisecond
	// othersWithin is the longest duration of reading this number. Meanwhile the last known
	// number is used.
	othersWithin = 500 * time.Millisecond
)

// Processes counts the running processes of this program. It is safe for concurrent use.
type Processes struct {
	store workdb.Processes
	self  workdb.Process
	// alone counts, by limit, the requests and messages that limits admitted or refused while
	// Redis did not answer.
	alone *prometheus.CounterVec

	mu     sync.Mutex
	others []delivery.ChannelSet
	readAt time.Time
}

// NewProcesses returns the processes of the program. This process delivers the channels. limits
// are the names of the limits that [Processes.Alone] counts.
func (a *App) NewProcesses(program string, channels delivery.ChannelSet, limits ...string) *Processes {
	p := &Processes{store: workdb.NewProcesses(a.DB), self: workdb.Process{ID: uuid.New(), Program: program, Channels: channels},
		alone: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_limits_alone_total",
			Help: "Requests and messages held against this process's own part of a limit, since Redis did not answer."}, []string{"limit"})}
	a.Registry.MustRegister(p.alone)
	for _, limit := range limits {
		p.Alone(limit, 0) // alerts see the increase from 0
	}
	return p
}

// Alone counts n of a limit that this process keeps by itself.
func (p *Processes) Alone(limit string, n int) { p.alone.WithLabelValues(limit).Add(float64(n)) }

// Enter records that this process runs, and counts the other processes.
func (p *Processes) Enter(ctx context.Context) error {
	if err := p.store.Enter(ctx, p.self); err != nil {
		return err
	}
	return p.read(ctx)
}

// Run repeats [Processes.Enter] until ctx ends, and then records that this process has ended.
// While the database does not answer, the last known processes count. Run reports no failures of
// the database: other parts show them.
func (p *Processes) Run(ctx context.Context) {
	tick := time.NewTicker(enterEvery)
	defer tick.Stop()
	for {
		entering, cancel := context.WithTimeout(ctx, enterEvery)
		_ = p.Enter(entering)
		cancel()
		select {
		case <-ctx.Done():
			leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), othersWithin)
			defer cancel()
			_ = p.store.Leave(leaving, p.self)
			return
		case <-tick.C:
		}
	}
}

func (p *Processes) read(ctx context.Context) error {
	others, err := p.store.Others(ctx, p.self)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readAt = time.Now(); err == nil {
		p.others = others
	}
	return err
}

// current returns the other processes, at most [othersFor] old while the database answers.
func (p *Processes) current(ctx context.Context) []delivery.ChannelSet {
	p.mu.Lock()
	due := time.Since(p.readAt) > othersFor
	if due {
		p.readAt = time.Now() // other callers use the last known processes meanwhile
	}
	p.mu.Unlock()
	if due {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), othersWithin)
		defer cancel()
		_ = p.read(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.others
}

// Delivering returns how many processes deliver the channel, with this one.
func (p *Processes) Delivering(ctx context.Context, c delivery.Channel) int {
	n := 1
	for _, channels := range p.current(ctx) {
		if channels.Has(c) {
			n++
		}
	}
	return n
}

// All returns how many processes there are, with this one.
func (p *Processes) All(ctx context.Context) int { return 1 + len(p.current(ctx)) }
