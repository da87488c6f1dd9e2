package drops

import (
	"errors"
	"net/http"
	"time"

	"dropbell/domain/forecast"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/console/shell"
)

// forecastAhead is how far the forecast looks.
const forecastAhead = 24 * time.Hour

func (h *handlers) forecast(w http.ResponseWriter, r *http.Request) error {
	p := droppages.Forecast{Horizon: forecastAhead}
	var err error
	if p.Channels, err = h.Forecaster.Forecast(r.Context(), p.Horizon); err != nil {
		return err
	}
	channels, err := h.States.Look(r.Context())
	if err != nil {
		return err
	}
	p.Halted = droppages.HaltedOf(channels)
	if p.Hidden, err = h.hidden(r, p.Channels); err != nil {
		return err
	}
	if p.Accuracy, err = h.Forecaster.Accuracy(r.Context()); err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, p.Page())
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
