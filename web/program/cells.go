package program

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/config"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/telemetry"
	"dropbell/app"
	"dropbell/domain/cell"
	"dropbell/domain/redeemcode"
	"dropbell/domain/reminder"
	"dropbell/web/cells"
)

const (
	// placesEvery is how often each cell is asked for its shops, and placesWithin how long a question
	// waits.
	placesEvery  = time.Second
	placesWithin = 2 * time.Second
	// settleWithin is how long the cells may take to say that a shop is new.
	settleWithin = 5 * time.Second
)

// buildAll builds the program, or that of home with the programs of the further cells in others.
func buildAll(ctx context.Context, cfg config.Config, log *slog.Logger) (*program, error) {
	if !cfg.Several() {
		return build(ctx, cfg, log)
	}
	home, err := build(ctx, cfg.OfCell(0), log)
	for n := 1; n < len(cfg.Cells) && err == nil; n++ {
		var one *program
		one, err = buildWith(ctx, cfg.OfCell(n), log, home)
		home.others = append(home.others, one)
		home.OnClose(one.Close)
	}
	return home, err
}

// all returns the programs of all cells at their numbers.
func (p *program) all() []*program { return append([]*program{p}, p.others...) }

// joinedHandler returns the handler of the program, or the front of the programs of all cells.
func (p *program) joinedHandler(ctx context.Context) (http.Handler, error) {
	if len(p.others) > 0 {
		p.places = newPlaces(p.all())
	}
	own, err := p.handler(ctx)
	if err != nil || len(p.others) == 0 {
		return own, err
	}
	list := []*cells.Cell{{Name: p.Config.CellName(), Handler: cells.Closed(own, p.places.open(0))}}
	for i, one := range p.others {
		h, err := one.handler(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, &cells.Cell{Name: one.Config.CellName(), Handler: cells.Closed(h, p.places.open(i+1))})
	}
	codes, err := redeemcode.ParseKeys(p.Config.CodeKeys)
	if err != nil {
		return nil, err
	}
	front := cells.New(list, cells.Options{Places: p.places, Now: time.Now, Lists: p.lists, OfOne: p.console.OfOne,
		CodeCell: func(typed string) (cell.Number, bool) {
			code, err := redeemcode.Parse(typed)
			if err != nil {
				return 0, false
			}
			serial, err := codes.Serial(code)
			return cell.OfSerial(int64(serial)), err == nil
		},
		LinkDrop: func(token string) (int64, bool) {
			r, err := reminder.NewLinks(p.Config.LinkSecret).Parse(token)
			return r.TemplateID, err == nil
		},
		LinkCampaign: func(token string) (int64, bool) {
			r, err := p.campaignLinks().Parse(token)
			return r.CampaignID, err == nil
		}})
	metrics := http.NotFoundHandler()
	if p.Config.MetricsAddr == "" {
		metrics = nearby(p.Config.MetricsToken, telemetry.Metrics(p.gatherer(), p.Config.MetricsToken))
	}
	ready := p.readyCells()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			ready(w, r)
		case "/metrics":
			metrics.ServeHTTP(w, r)
		default:
			front.ServeHTTP(w, r)
		}
	}), nil
}

// readyCells answers /readyz for the programs of all cells.
func (p *program) readyCells() http.HandlerFunc {
	var names []string
	var ready []http.HandlerFunc
	for i, one := range p.all() {
		names = append(names, one.Config.CellName())
		ready = append(ready, func(w http.ResponseWriter, r *http.Request) {
			if !p.places.open(i)() {
				http.Error(w, "it does not answer, does not have its copies of home's rows yet, or is not the cell that CELLS says", http.StatusServiceUnavailable)
				return
			}
			one.ready(w, r)
		})
	}
	return app.ReadyOfCells(names, ready)
}

// places knows which cell has which shop. It implements [cells.Places].
type places struct {
	programs []*program
	held     []atomic.Pointer[workdb.Held] // by cell; nil = it has not answered yet
	silent   []atomic.Bool                 // by cell; whether it left the last question unanswered
	now      atomic.Pointer[cells.Map]
	settling chan struct{} // has room for one
}

func newPlaces(programs []*program) *places {
	s := &places{programs: programs, held: make([]atomic.Pointer[workdb.Held], len(programs)), silent: make([]atomic.Bool, len(programs)), settling: make(chan struct{}, 1)}
	s.join()
	return s
}

// Map is part of [cells.Places].
func (s *places) Map() *cells.Map { return s.now.Load() }

// open returns whether requests may reach the cell. Home serves from the start, as one database does.
func (s *places) open(n int) func() bool {
	return func() bool {
		h := s.held[n].Load()
		return h == nil && n == 0 || h != nil && h.Joined && int(h.Number) == n
	}
}

// answers returns whether lists may ask the cell: requests may reach it, and it has answered the last
// question.
func (s *places) answers(n int) func() bool {
	open := s.open(n)
	return func() bool { return open() && !s.silent[n].Load() }
}

// join makes the map of what the cells have said.
func (s *places) join() {
	m := &cells.Map{Shops: map[int64]cell.Number{}, Older: make([]int64, len(s.programs)), Known: true}
	arriving := map[int64]cell.Number{}
	for n := range s.held {
		h := s.held[n].Load()
		if h == nil || int(h.Number) != n {
			m.Known = false
			continue
		}
		if n > 0 {
			m.Older[n] = h.Older
		}
		if n == 0 && len(h.Removed) > 0 { // shops that left them may be anywhere
			for to := range s.programs {
				m.Moved = append(m.Moved, cell.Number(to))
			}
		}
		for _, shop := range h.Shops {
			if slices.Contains(h.Arriving, shop) {
				arriving[shop] = cell.Number(n)
			} else {
				m.Shops[shop] = cell.Number(n)
			}
		}
		for _, to := range h.Left {
			if !slices.Contains(m.Moved, to) {
				m.Moved = append(m.Moved, to)
			}
		}
	}
	for shop, n := range arriving {
		if _, ok := m.Shops[shop]; !ok {
			m.Shops[shop] = n
		}
	}
	s.now.Store(m)
}

// read asks one cell.
func (s *places) read(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, placesWithin)
	defer cancel()
	h, err := s.programs[n].Stores.Cells.Held(ctx)
	if s.silent[n].Store(err != nil); err == nil {
		s.held[n].Store(&h)
		s.join()
	}
	return err
}

// silent is 1 while requests do not reach the program's cell or it leaves questions unanswered.
func (p *program) silent() float64 {
	home := p
	if p.home != nil {
		home = p.home
	}
	if home.places == nil || home.places.answers(p.Config.Cell)() {
		return 0
	}
	return 1
}

// run asks one cell again and again until ctx ends.
func (s *places) run(ctx context.Context, n int) {
	tick := time.NewTicker(placesEvery)
	defer tick.Stop()
	told := false
	for {
		_ = s.read(ctx, n)
		if h := s.held[n].Load(); h != nil && int(h.Number) != n && !told {
			told = true
			s.programs[n].Log.Error("the database is not the cell that CELLS says: nothing of it is served", "is", h.Number, "want", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Settle is part of [cells.Places].
func (s *places) Settle(ctx context.Context, shop int64, do func(cell.Number)) error {
	waiting, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	select {
	case s.settling <- struct{}{}:
		defer func() { <-s.settling }()
	case <-waiting.Done():
		return waiting.Err()
	}
	return s.programs[0].Stores.Cells.Settling(waiting, func() error {
		for n := range s.programs {
			if err := s.read(waiting, n); err != nil {
				return err
			}
		}
		n, ok := s.Map().Shops[shop]
		if !ok {
			n = s.emptiest()
		}
		do(n)
		return s.read(waiting, int(n))
	})
}

// emptiest returns the open cell with the fewest shops.
func (s *places) emptiest() (least cell.Number) {
	for n := range s.held {
		if s.open(n)() && len(s.held[n].Load().Shops) < len(s.held[least].Load().Shops) {
			least = cell.Number(n)
		}
	}
	return least
}

// gatherer returns the metrics of all cells.
func (p *program) gatherer() prometheus.Gatherer {
	var apps []*app.App
	for _, one := range p.all() {
		apps = append(apps, one.App)
	}
	return app.Gather(apps...)
}
