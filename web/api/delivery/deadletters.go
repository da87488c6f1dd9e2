package delivery

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"dropbell/domain/delivery"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

// DeadLetterFilter selects dead letters; absent fields select everything.
type DeadLetterFilter struct {
	Channel     *string `json:"channel,omitempty" enum:"app,email,sms,webpush,webhook"`
	Fingerprint *string `json:"fingerprint,omitempty" maxLength:"200" doc:"Groups equal errors; see GET /admin/dead-letters. Empty selects those without any words."`
	TemplateID  *string `json:"template_id,omitempty" pattern:"^[1-9][0-9]{0,18}$"`
	CampaignID  *string `json:"campaign_id,omitempty" pattern:"^[1-9][0-9]{0,18}$"`
	UserID      *string `json:"user_id,omitempty" pattern:"^[1-9][0-9]{0,18}$"`
}

// DeadLetterGroup is how many died of one kind of error on one channel.
type DeadLetterGroup struct {
	Channel     string    `json:"channel" example:"email"`
	Fingerprint string    `json:"fingerprint" example:"status #"`
	Count       int64     `json:"count"`
	FirstAt     time.Time `json:"first_at"`
	LastAt      time.Time `json:"last_at"`
	Sample      string    `json:"sample" doc:"One provider's answer as it came."`
}

// DeadLetterGroups is the answer of the list.
type DeadLetterGroups struct {
	Groups []DeadLetterGroup `json:"groups" nullable:"false"`
	Jobs   []DeadLetterJob   `json:"jobs" nullable:"false" doc:"The newest replays and discards."`
}

// DeadLetterOrder is the request for a replay or a discard.
type DeadLetterOrder struct {
	Filter        DeadLetterFilter `json:"filter"`
	DryRun        bool             `json:"dry_run,omitempty" doc:"Report what would happen and change nothing."`
	RatePerSecond int              `json:"rate_per_second,omitempty" minimum:"0" maximum:"1000000" doc:"At most so many per second; 0 = as fast as the channel allows."`
	Reason        string           `json:"reason,omitempty" maxLength:"500" doc:"Why, for the audit log."`
}

// DeadLetterAnswer describes the effect of an order, and names the job that carries it out.
type DeadLetterAnswer struct {
	DryRun      bool           `json:"dry_run"`
	Total       int64          `json:"total" doc:"Dead letters the filter selects."`
	InTime      int64          `json:"in_time" doc:"Their opening is still ahead."`
	TooLate     int64          `json:"too_late" doc:"Their opening has passed; a replay leaves them dead."`
	AlreadySent int64          `json:"already_sent" doc:"Another attempt got through; never sent again."`
	Job         *DeadLetterJob `json:"job,omitempty"`
}

// DeadLetterJob is a replay or discard at work.
type DeadLetterJob struct {
	ID        string    `json:"id"`
	Action    string    `json:"action" enum:"replay,discard"`
	State     string    `json:"state" enum:"running,finished,cancelled"`
	Total     int64     `json:"total"`
	Done      int64     `json:"done"`
	TooLate   int64     `json:"too_late"`
	Sent      int64     `json:"already_sent"`
	CreatedAt time.Time `json:"created_at"`
}

type deadLetterOrder struct {
	Status int
	Body   DeadLetterAnswer
}

func (h *handlers) deadLetterRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/dead-letters", "list-dead-letters", "Count dead letters by channel and kind of error",
		pipeline.Route{Description: "The most frequent first.", Cells: &cells.List{}}), h.deadLetters)
	for _, action := range []delivery.DeadLetterAction{delivery.Replay, delivery.Discard} {
		summary, text := "Replay dead letters", "In the background. Users whom another attempt has reached are not sent the message again, and nothing is sent after the opening."
		if action == delivery.Discard {
			summary, text = "Discard dead letters", "In the background. They keep counting as dead in the balance sheet."
		}
		pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/dead-letters/"+string(action), string(action)+"-dead-letters", summary,
			pipeline.Route{Traits: pipeline.Traits{Reads: true}, Description: text, Status: http.StatusAccepted,
				Also:    map[int]string{http.StatusOK: "The dry run: nothing was changed."},
				Codes:   []string{"channel_unavailable"},
				Example: `{"filter":{"channel":"email"},"dry_run":true}`}), h.order(action))
	}
}

// deadLetterWish is a [DeadLetterFilter] in an address.
type deadLetterWish struct {
	Channel     string `query:"channel" enum:"app,email,sms,webpush,webhook"`
	Fingerprint string `query:"fingerprint" maxLength:"200" doc:"Groups equal errors; empty selects those without any words."`
	TemplateID  string `query:"template_id" pattern:"^[1-9][0-9]{0,18}$"`
	CampaignID  string `query:"campaign_id" pattern:"^[1-9][0-9]{0,18}$"`
	UserID      string `query:"user_id" pattern:"^[1-9][0-9]{0,18}$"`
	// fingerprint is nil if the address has none, which is not an empty one.
	fingerprint *string
}

// Resolve is part of [huma.Resolver].
func (in *deadLetterWish) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	if u.Query().Has("fingerprint") {
		in.fingerprint = &in.Fingerprint
	}
	return nil
}

func (h *handlers) deadLetters(ctx context.Context, in *deadLetterWish) (*struct{ Body DeadLetterGroups }, error) {
	f, err := DeadLetterFilter{given(in.Channel), in.fingerprint, given(in.TemplateID), given(in.CampaignID), given(in.UserID)}.filter("query")
	if err != nil {
		return nil, err
	}
	groups, err := h.DeadLetters.Groups(ctx, pipeline.ActorOf(ctx), f)
	if err != nil {
		return nil, err
	}
	jobs, err := h.DeadLetters.Jobs(ctx, pipeline.ActorOf(ctx), 20)
	if err != nil {
		return nil, err
	}
	return &struct{ Body DeadLetterGroups }{DeadLetterGroups{pipeline.Each(groups, func(g delivery.DeadLetterGroup) DeadLetterGroup {
		return DeadLetterGroup{g.Channel.String(), g.Fingerprint, g.Dead, g.FirstAt, g.LastAt, g.Sample}
	}), pipeline.Each(jobs, jobJSON)}}, nil
}

func (h *handlers) order(action delivery.DeadLetterAction) func(context.Context, *struct{ Body DeadLetterOrder }) (*deadLetterOrder, error) {
	return func(ctx context.Context, in *struct{ Body DeadLetterOrder }) (*deadLetterOrder, error) {
		f, err := in.Body.Filter.filter("body.filter")
		if err != nil {
			return nil, err
		}
		if err := pipeline.CheckText("body.reason", in.Body.Reason); err != nil {
			return nil, err
		}
		t, err := h.DeadLetters.DryRun(ctx, pipeline.ActorOf(ctx), f, in.Body.RatePerSecond)
		if err != nil {
			return nil, err
		}
		out := &deadLetterOrder{http.StatusOK, DeadLetterAnswer{DryRun: in.Body.DryRun, Total: t.Total, InTime: t.InTime,
			TooLate: t.TooLate, AlreadySent: t.AlreadySent}}
		if in.Body.DryRun {
			return out, nil
		}
		j, err := h.DeadLetters.Start(ctx, pipeline.ActorOf(ctx), delivery.DeadLetterOrder{Action: action, Filter: f,
			Rate: in.Body.RatePerSecond, Reason: in.Body.Reason, RequestKey: pipeline.RequestKey(ctx)})
		if err != nil {
			return nil, err
		}
		job := jobJSON(j)
		out.Status, out.Body.Job = http.StatusAccepted, &job
		return out, nil
	}
}

func jobJSON(j delivery.DeadLetterJob) DeadLetterJob {
	return DeadLetterJob{ID: pipeline.Decimal(j.ID), Action: string(j.Action), State: j.State, Total: j.Total, Done: j.Done,
		TooLate: j.Late, Sent: j.Sent, CreatedAt: j.CreatedAt}
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (f DeadLetterFilter) filter(place string) (delivery.DeadLetterFilter, error) {
	out := delivery.DeadLetterFilter{Fingerprint: f.Fingerprint}
	if f.Channel != nil {
		c, err := delivery.ParseChannel(*f.Channel)
		if err != nil {
			return out, err
		}
		out.Channel = &c
	}
	for _, x := range []struct {
		name string
		text *string
		into *int64
	}{
		{".template_id", f.TemplateID, &out.TemplateID},
		{".campaign_id", f.CampaignID, &out.CampaignID},
		{".user_id", f.UserID, (*int64)(&out.UserID)},
	} {
		if x.text == nil {
			continue
		}
		id, err := pipeline.ParseID(place+x.name, *x.text)
		if err != nil {
			return out, err
		}
		*x.into = id
	}
	return out, nil
}
