package drops

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"dropbell/domain/forecast"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/console/shell"
)

// forecastAhead is how far the forecast looks.
const forecastAhead = 24 * time.Hour

// forecast shows what is due in all databases.
func (h *handlers) forecast(w http.ResponseWriter, r *http.Request) error {
	if err := h.UseShopsZone(r, 0); err != nil {
		return err
	}
	got, err := shell.Across(h.Shell, r, h.cells, (*handlers).ownForecast)
	if err != nil {
		return err
	}
	p := *got[0]
	for _, o := range got[1:] {
		if o == nil {
			continue
		}
		p.Channels = joinForecasts(p.Channels, o.Channels)
		maps.Copy(p.Hidden, o.Hidden)
		for i, why := range o.Halted {
			p.Halted[i] = cmp.Or(p.Halted[i], why)
		}
		if o.Accuracy.Drops > p.Accuracy.Drops {
			p.Accuracy = o.Accuracy
		}
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

// ownForecast returns what is due in this database.
func (h *handlers) ownForecast(r *http.Request) (droppages.Forecast, error) {
	p := droppages.Forecast{Horizon: forecastAhead}
	var err error
	if p.Channels, err = h.Forecaster.Forecast(r.Context(), p.Horizon); err != nil {
		return p, err
	}
	channels, err := h.States.Look(r.Context())
	if err != nil {
		return p, err
	}
	p.Halted = droppages.HaltedOf(channels)
	if p.Hidden, err = h.hidden(r, p.Channels); err != nil {
		return p, err
	}
	p.Accuracy, err = h.Forecaster.Accuracy(r.Context())
	return p, err
}

// joinForecasts adds the forecast of another database.
func joinForecasts(list, more []forecast.ChannelForecast) []forecast.ChannelForecast {
	list = slices.Clone(list)
	for _, f := range more {
		i := slices.IndexFunc(list, func(c forecast.ChannelForecast) bool { return c.Channel == f.Channel })
		if i < 0 {
			list = append(list, f)
			continue
		}
		list[i].Jobs, list[i].Missed = slices.Concat(list[i].Jobs, f.Jobs), list[i].Missed+f.Missed
		slices.SortStableFunc(list[i].Jobs, func(a, b forecast.Prognosis) int { return a.DueAt.Compare(b.DueAt) })
	}
	return list
}

// hidden returns the templates that the viewer may not see. Their load is part of the forecast all
// the same: the shops share the channels.
func (h *handlers) hidden(r *http.Request, channels []forecast.ChannelForecast) (map[int64]bool, error) {
	hidden := map[int64]bool{}
	if len(shell.Actor(r).Shops) == 0 {
		return hidden, nil
	}
	for _, ch := range channels {
		for _, j := range ch.Jobs {
			if _, known := hidden[j.TemplateID]; known {
				continue
			}
			_, err := h.Templates.Template(r.Context(), shell.Actor(r), j.TemplateID)
			gone := errors.Is(err, staff.ErrForbidden) || errors.Is(err, template.ErrNotFound)
			if err != nil && !gone {
				return nil, err
			}
			hidden[j.TemplateID] = gone
		}
	}
	return hidden, nil
}
