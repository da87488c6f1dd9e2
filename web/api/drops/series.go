package drops

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/series"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// StandingWish is the request for reminders of all drops of a series.
type StandingWish struct {
	ShopNumber string         `json:"shop_number" pattern:"^[1-9][0-9]{0,18}$" doc:"The shop the series belongs to." example:"10"`
	Reminders  []ReminderWish `json:"reminders" minItems:"1" maxItems:"60" nullable:"false" doc:"The reminders of each drop, in place of those that the user had before."`
}

// Standing is all reminders that one user gets of every drop of a series.
type Standing struct {
	SeriesID   string         `json:"series_id" example:"1"`
	ShopNumber string         `json:"shop_number" example:"10"`
	SeriesName string         `json:"series_name" example:"Friday deal"`
	Slots      string         `json:"slots" doc:"The reminders as one number: bit 12 × channel + minutes ÷ 5 − 1." example:"2"`
	Reminders  []ReminderWish `json:"reminders" nullable:"false" doc:"The farthest from the opening first."`
	CreatedAt  time.Time      `json:"created_at" example:"2027-01-01T12:00:00Z"`
}

// StandingList are a user's standing reservations.
type StandingList struct {
	Reservations []Standing `json:"reservations" nullable:"false"`
}

type standingAnswer struct {
	Status int
	Body   Standing
}

type seriesPath struct {
	SeriesID string `path:"series_id" pattern:"^[1-9][0-9]{0,18}$" doc:"The series: series_id of one of its drops."`
}

func (h *handlers) seriesRoutes() {
	const path = "/series/{series_id}/reservation"
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Detached: true}, Method: http.MethodPut, Path: path, ID: "reserve-series",
		Summary: "Be reminded of each drop of a series", Status: http.StatusCreated,
		Description: "A standing reservation: its reminders are reserved for every drop of the series once the drop is published, and for those that are published and have not opened. " +
			"What the user reserves or cancels for one drop holds for that drop. A repetition changes nothing.",
		Also:    map[int]string{http.StatusOK: "In place of the user's earlier one."},
		Codes:   []string{"series_not_found", "series_ended", "channel_unavailable", "user_erased"},
		Example: `{"shop_number":"10","reminders":[{"channel":"app","minutes":10}]}`}, h.reserveSeries)
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: path, ID: "get-series-reservation",
		Summary: "Show the user's standing reservation", Codes: []string{"series_not_found", "not_reserved"}}, h.readStanding)
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Detached: true}, Method: http.MethodDelete, Path: path, ID: "end-series-reservation",
		Summary: "End the user's standing reservation", Description: "Cancels what was reserved by it too, as far as it is not due yet and the user has not changed it since. Answers with the reservation that ended.",
		Codes: []string{"series_not_found", "not_reserved"}}, h.endStanding)
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/series/reservations", ID: "list-series-reservations",
		Summary: "List the user's standing reservations", Cells: &cells.List{}}, h.standings)
}

func (h *handlers) reserveSeries(ctx context.Context, in *struct {
	SeriesID string `path:"series_id" pattern:"^[1-9][0-9]{0,18}$" doc:"The series: series_id of one of its drops."`
	Body     StandingWish
}) (*standingAnswer, error) {
	id, err1 := pipeline.ParseID("path.series_id", in.SeriesID)
	shop, err2 := pipeline.ParseID("body.shop_number", in.Body.ShopNumber)
	if err := pipeline.Merge(err1, err2); err != nil {
		return nil, err
	}
	wishes, err := parseWishes(in.Body.Reminders)
	if err != nil {
		return nil, h.wishProblem(ctx, in.Body.Reminders, err, inBody)
	}
	s, created, err := h.Standing.Reserve(ctx, series.Request{SeriesID: id, UserID: pipeline.UserOf(ctx), ShopNumber: shop, Reminders: wishes})
	if err != nil {
		return nil, blame(h.Problem(ctx, err), err, wishes, inBody)
	}
	answer := &standingAnswer{http.StatusOK, standingJSON(s)}
	if created {
		answer.Status = http.StatusCreated
	}
	return answer, nil
}

func (h *handlers) readStanding(ctx context.Context, in *seriesPath) (*standingAnswer, error) {
	id, err := pipeline.ParseID("path.series_id", in.SeriesID)
	if err != nil {
		return nil, err
	}
	s, err := h.Standing.Reservation(ctx, pipeline.UserOf(ctx), id)
	return &standingAnswer{http.StatusOK, standingJSON(s)}, err
}

func (h *handlers) endStanding(ctx context.Context, in *seriesPath) (*standingAnswer, error) {
	id, err := pipeline.ParseID("path.series_id", in.SeriesID)
	if err != nil {
		return nil, err
	}
	s, err := h.Standing.Reservation(ctx, pipeline.UserOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return &standingAnswer{http.StatusOK, standingJSON(s)}, h.Standing.End(ctx, pipeline.UserOf(ctx), id)
}

func (h *handlers) standings(ctx context.Context, _ *struct{}) (*struct{ Body StandingList }, error) {
	list, err := h.Standing.Of(ctx, pipeline.UserOf(ctx))
	return &struct{ Body StandingList }{StandingList{pipeline.Each(list, standingJSON)}}, err
}

func standingJSON(s series.Standing) Standing {
	j := Standing{SeriesID: pipeline.Decimal(s.SeriesID), ShopNumber: pipeline.Decimal(s.ShopNumber), SeriesName: s.SeriesName, Slots: s.Slots.String(),
		Reminders: []ReminderWish{}, CreatedAt: s.CreatedAt.UTC()}
	for _, r := range s.Slots.Reminders() {
		j.Reminders = append(j.Reminders, ReminderWish{r.Channel.String(), r.Slot.Minutes()})
	}
	return j
}
