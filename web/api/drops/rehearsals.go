package drops

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/rehearsal"
	"dropbell/web/api/pipeline"
)

// Rehearsal is one rehearsal of a drop.
type Rehearsal struct {
	ID       string           `json:"id" doc:"Of the copy of the drop, which keys that begin with dbk_test_ reach as a template." example:"129"`
	State    string           `json:"state" enum:"asked,running,done,failed"`
	AskedAt  time.Time        `json:"asked_at"`
	OpensAt  *time.Time       `json:"opens_at,omitempty" doc:"When the copy opens; absent until it is made."`
	EndedAt  *time.Time       `json:"ended_at,omitempty"`
	Step     string           `json:"step,omitempty" enum:"preparing,waiting,reminding,rushing,counting" doc:"What it is doing; absent unless it runs."`
	Report   *RehearsalReport `json:"report,omitempty" doc:"Absent unless it is done."`
	Failed   string           `json:"failed,omitempty" doc:"Why it did not end." example:"the worker was stopped"`
	Removed  bool             `json:"removed" doc:"Whether the copy is gone, a day after its end or at once if it failed."`
	Evening  int64            `json:"evening_wave_ms" doc:"How long the longest wave of the evening itself took; 0 before it." example:"66000"`
	SoldOut  int64            `json:"evening_sold_out_ms" doc:"How long after its opening the evening's last coupon was given; 0 before that." example:"1800"`
	Template string           `json:"template_id" example:"1"`
}

// RehearsalReport is what a rehearsal showed.
type RehearsalReport struct {
	Users      int64           `json:"users" doc:"Users who were copied." example:"5000"`
	Share      int64           `json:"share_permille" doc:"How many thousandths of those who reserved." example:"100"`
	Reminders  int64           `json:"reminders" example:"60000"`
	Sent       int64           `json:"sent" example:"59000"`
	Skipped    int64           `json:"skipped" example:"900"`
	Dead       int64           `json:"dead" doc:"Refused as often as providers refuse." example:"100"`
	Expired    int64           `json:"expired" example:"0"`
	LateP50    int64           `json:"late_p50_ms" example:"150"`
	LateP99    int64           `json:"late_p99_ms" example:"900"`
	Wave       int64           `json:"wave_ms" doc:"How long the longest wave of reminders takes with all users, from the share." example:"64000"`
	Forecast   int64           `json:"forecast_wave_ms" doc:"What the forecast says about it." example:"61000"`
	Claims     int64           `json:"claims" example:"5000"`
	Issued     int64           `json:"issued" example:"100"`
	Stock      int64           `json:"stock" example:"100"`
	Unanswered int64           `json:"unanswered" example:"0"`
	ClaimP50   int64           `json:"claim_p50_ms" example:"4"`
	ClaimP99   int64           `json:"claim_p99_ms" example:"60"`
	Rate       int64           `json:"claims_per_second" doc:"In the busiest second." example:"1200"`
	Oversold   int64           `json:"oversold" doc:"Coupons beyond the stock; must be 0." example:"0"`
	Difference int64           `json:"difference" doc:"Reminders and coupons unaccounted for; must be 0." example:"0"`
	Twice      int64           `json:"tapped_twice" example:"620"`
	Expected   int64           `json:"forecast_claims_per_second" doc:"Customers in the busiest second with all users, as the forecast says." example:"12000"`
	Rehearsed  int64           `json:"all_claims_per_second" doc:"The same as rehearsed, from the share." example:"12000"`
	SoldOut    int64           `json:"sold_out_ms" doc:"How long after the opening the last coupon was given; 0 = some are left." example:"2000"`
	Forecasted int64           `json:"forecast_sold_out_ms" doc:"What the forecast says about it; 0 = nothing." example:"1400"`
	Parts      []RehearsalPart `json:"parts" nullable:"false" doc:"How the claim gate, doors, protection, draw and waitlist of the drop went."`
	Bottleneck string          `json:"bottleneck" enum:"none,providers,reminders,claims,refusals" doc:"What would give way first."`
}

// RehearsalPart is how a part of the rehearsed opening went.
type RehearsalPart struct {
	Kind    string `json:"kind" enum:"gate,door,strangers,pass,draw,result,waitlist,early" doc:"strangers are customers who belong to no door of the drop, pass are customers who came without one to a protected drop, result are the messages about a draw, early the reminders of doors that open earlier."`
	Name    string `json:"name,omitempty" doc:"Of the door." example:"Club members"`
	Came    int64  `json:"came" doc:"Customers who came; behind the gate those who were promised a coupon; of result those who entered; of early the reminders that were due." example:"400"`
	Got     int64  `json:"got" doc:"Of them, those who got a coupon; of result and early the messages that were sent." example:"40"`
	Refused int64  `json:"refused" example:"360"`
	Back    int64  `json:"back" doc:"Coupons that came back for the waitlist." example:"5"`
	Took    int64  `json:"took_ms" doc:"From the last customer to the last coupon; of pass how long a puzzle took." example:"1900"`
	Off     int64  `json:"difference" doc:"Coupons given wrongly, or not given, and entries that were told nothing; must be 0." example:"0"`
}

// RehearsalList is the rehearsals of a drop.
type RehearsalList struct {
	Rehearsals []Rehearsal `json:"rehearsals" nullable:"false" doc:"The newest first, at most 20."`
}

func (h *handlers) rehearsalRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/templates/{id}/rehearsals", "rehearse-template", "Rehearse a drop",
		pipeline.Route{Description: "A worker begins within seconds: a copy of the drop with a share of its users opens within minutes, in tables of its own, and made-up users claim its coupons. Nothing is sent, and nothing of it counts.",
			Status: http.StatusAccepted, Codes: []string{"template_not_found", "rehearsal_running", "rehearsal_state", "rehearsal_near_opening"}}), pipeline.ByID(h.rehearse))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/templates/{id}/rehearsals", "list-rehearsals", "List the rehearsals of a drop",
		pipeline.Route{Description: "With their reports.", Codes: []string{"template_not_found"}}), pipeline.ByID(h.rehearsals))
}

func (h *handlers) rehearse(ctx context.Context, id int64) (*struct{ Body Rehearsal }, error) {
	r, err := h.Rehearsals.Ask(ctx, pipeline.ActorOf(ctx), id)
	return &struct{ Body Rehearsal }{rehearsalJSON(r, rehearsal.Evening{})}, err
}

func (h *handlers) rehearsals(ctx context.Context, id int64) (*struct{ Body RehearsalList }, error) {
	list, evening, err := h.Rehearsals.Of(ctx, pipeline.ActorOf(ctx), id)
	return &struct{ Body RehearsalList }{RehearsalList{pipeline.Each(list, func(r rehearsal.Rehearsal) Rehearsal { return rehearsalJSON(r, evening) })}}, err
}

func rehearsalJSON(r rehearsal.Rehearsal, e rehearsal.Evening) Rehearsal {
	j := Rehearsal{ID: pipeline.Decimal(r.ID), Template: pipeline.Decimal(r.TemplateID), State: string(r.State), AskedAt: r.AskedAt.UTC(), OpensAt: pipeline.UTC(r.OpensAt), EndedAt: pipeline.UTC(r.EndedAt),
		Failed: r.Detail, Removed: r.Removed, Evening: e.Wave, SoldOut: e.SoldOut}
	if r.State == rehearsal.Running {
		j.Step = string(r.Progress.Step)
	}
	if p := r.Report; p != nil {
		j.Report = &RehearsalReport{p.Users, p.SharePermille, p.Reminders, p.Sent, p.Skipped, p.Dead, p.Expired, p.LateP50, p.LateP99, p.Wave, p.Forecast, p.Claims, p.Issued, p.Stock, p.Failed,
			p.ClaimP50, p.ClaimP99, p.Rate, p.Oversold, p.Off, p.Twice, p.Expected, p.Rehearsed, p.SoldOut, p.ExpectedSoldOut,
			pipeline.Each(p.Parts, func(p rehearsal.Part) RehearsalPart {
				return RehearsalPart{string(p.Kind), p.Name, p.Came, p.Got, p.Refused, p.Back, p.Took, p.Off}
			}), string(p.Bottleneck)}
	}
	return j
}
