package app

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// gathered adds a label with the cell's name to the metrics of a program.
type gathered struct{ *App }

// Gather is part of [prometheus.Gatherer].
func (g gathered) Gather() ([]*dto.MetricFamily, error) {
	families, err := g.Registry.Gather()
	name, value := "cell", g.Config.CellName()
	for _, f := range families {
		for _, m := range f.Metric {
			m.Label = append(m.Label, &dto.LabelPair{Name: &name, Value: &value})
			slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
		}
	}
	return families, err
}

// Gather returns the metrics of the programs of all cells, each with the label cell. The metrics of
// one program alone have no such label.
func Gather(programs ...*App) prometheus.Gatherer {
	if len(programs) == 1 {
		return programs[0].Registry
	}
	var all prometheus.Gatherers
	for _, p := range programs {
		all = append(all, gathered{p})
	}
	return all
}

// ReadyOfCells answers /readyz for the programs of several cells: 200 while one of them is ready, with a
// line for each reason why another one is not. ready has the handlers of the programs, names those of
// their cells.
func ReadyOfCells(names []string, ready []http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answers := make([]answered, len(ready))
		var all sync.WaitGroup
		for i, one := range ready {
			all.Go(func() { one(&answers[i], r) })
		}
		all.Wait()
		status, text := http.StatusServiceUnavailable, strings.Builder{}
		for i, a := range answers {
			if a.status < 300 {
				status = http.StatusOK
				continue
			}
			for line := range strings.Lines(a.String()) {
				fmt.Fprintf(&text, "cell %s: %s\n", names[i], strings.TrimSpace(line))
			}
		}
		if status != http.StatusOK {
			http.Error(w, text.String(), status)
			return
		}
		fmt.Fprint(w, "ok\n"+text.String())
	}
}

// answered keeps the answer of one program.
type answered struct {
	bytes.Buffer
	status int
	header http.Header
}

// Header is part of [http.ResponseWriter].
func (a *answered) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

// WriteHeader is part of [http.ResponseWriter].
func (a *answered) WriteHeader(status int) { a.status = status }
