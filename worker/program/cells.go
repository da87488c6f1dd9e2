package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/config"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/app"
	"dropbell/domain/cell"
)

// helloWithin bounds a question whether a cell answers.
const helloWithin = 3 * time.Second

// buildAll builds the program, or that of home with the programs of the further cells in others.
func buildAll(ctx context.Context, cfg config.Config, log *slog.Logger) (*program, error) {
	if !cfg.Several() {
		return build(ctx, cfg, log)
	}
	home, err := build(ctx, cfg.OfCell(0), log)
	for n := 1; n < len(cfg.Cells) && err == nil; n++ {
		var one *program
		one, err = build(ctx, cfg.OfCell(n), log)
		one.home = home
		home.others = append(home.others, one)
		home.OnClose(one.Close)
	}
	return home, err
}

// all returns the programs of all cells at their numbers.
func (p *program) all() []*program { return append([]*program{p}, p.others...) }

// serveAll runs the programs of all cells until ctx ends or one of them fails for good.
func (p *program) serveAll(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(p.all()))
	var all sync.WaitGroup
	for i, one := range p.all() {
		all.Go(func() {
			if errs[i] = one.serve(ctx); errs[i] != nil && len(p.others) > 0 {
				errs[i] = fmt.Errorf("cell %s: %w", one.Config.CellName(), errs[i])
			}
			cancel()
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// gatherer returns the metrics of all cells.
func (p *program) gatherer() prometheus.Gatherer {
	var apps []*app.App
	for _, one := range p.all() {
		apps = append(apps, one.App)
	}
	return app.Gather(apps...)
}

// readyOfAll answers /readyz for the programs of all cells.
func (p *program) readyOfAll() http.HandlerFunc {
	if len(p.others) == 0 {
		return p.ready()
	}
	var names []string
	var ready []http.HandlerFunc
	for _, one := range p.all() {
		names, ready = append(names, one.Config.CellName()), append(ready, one.ready())
	}
	return app.ReadyOfCells(names, ready)
}

// elsewhere tells each cell which shops the others have, so that no shop is made twice. told is what
// they know already.
func (p *program) elsewhere() func(context.Context) error {
	type pair struct{ at, of int }
	told := map[pair][]int64{}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, helloWithin)
		defer cancel()
		held := make([]*workdb.Held, len(p.all()))
		var all sync.WaitGroup
		for n, one := range p.all() {
			all.Go(func() {
				if h, err := one.Stores.Cells.Held(ctx); err == nil && int(h.Number) == n {
					held[n] = &h
				}
			})
		}
		all.Wait()
		var errs []error
		for at, here := range held {
			for of, h := range held {
				if here == nil || h == nil || at == of {
					continue
				}
				shops := slices.DeleteFunc(slices.Clone(h.Shops), func(shop int64) bool { return slices.Contains(h.Arriving, shop) })
				if known, ok := told[pair{at, of}]; ok && slices.Equal(known, shops) {
					continue
				}
				err := p.all()[at].Stores.Cells.KnowElsewhere(ctx, cell.Number(of), shops)
				if errs = append(errs, err); err == nil {
					told[pair{at, of}] = shops
				}
			}
		}
		return errors.Join(errs...)
	}
}
