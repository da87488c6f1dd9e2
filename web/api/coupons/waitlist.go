package coupons

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/waitlist"
	"dropbell/web/api/pipeline"
)

// Wait is a user's place on the waitlist of a drop.
type Wait struct {
	TemplateID string    `json:"template_id" example:"1"`
	State      string    `json:"state" enum:"waiting,offered,filled,lapsed,left,skipped" doc:"offered: a coupon is kept for the user until accept_until. filled: the coupon is the user's. lapsed: the user did not accept two offers in time, and gets no further one. left: the user left; joining again puts the user at the end. skipped: it was the user's turn, and reason says why there was no coupon." example:"waiting"`
	JoinedAt   time.Time `json:"joined_at" example:"2027-01-01T12:00:03Z"`
	ChangedAt  time.Time `json:"changed_at" doc:"When the state was reached." example:"2027-01-01T12:00:03Z"`
	Channels   []string  `json:"channels" nullable:"false" doc:"Over which the user is told of the coupon." example:"[\"app\"]"`
	CouponID   string    `json:"coupon_id,omitempty" doc:"Once filled." example:"17"`
	// AcceptUntil is nil for a user who can accept nothing now.
	AcceptUntil *time.Time `json:"accept_until,omitempty" doc:"Until when the user can accept a coupon, with POST /waitlist/{template_id}/accept; absent if there is none to accept." example:"2027-01-01T12:30:03Z"`
	Shared      bool       `json:"shared,omitempty" doc:"With accept_until: all users who wait can accept the coupons that are left, and the first of them get one. So it is in the last hour of a drop."`
	Lapses      int        `json:"lapses,omitempty" doc:"Offers that the user did not accept in time. After the first the user waits behind all others." example:"1"`
	Ahead       string     `json:"ahead,omitempty" enum:"under_10,under_100,under_1000,more" doc:"While waiting, when the place is read: roughly how many users are before." example:"under_100"`
	Chance      string     `json:"chance,omitempty" enum:"good,some,small" doc:"With ahead: how often the shop's last waitlists reached that far; absent where there were too few." example:"some"`
	Reason      string     `json:"reason,omitempty" doc:"Why the user was skipped: limit_reached, household_limit, taken_back (a coupon of the drop was taken from the user), struck (the user's entry of the draw was), user_erased, or ended." example:"ended"`
}

type waitAnswer struct {
	Status int
	Body   Wait
}

type waitPath struct {
	TemplateID string `path:"template_id" pattern:"^[1-9][0-9]{0,18}$" doc:"The drop."`
}

func (h *handlers) waitlistRoutes() {
	const path = "/waitlist/{template_id}"
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Hot: true, Detached: true, Quick: h.joinQuickly}, Method: http.MethodPut, Path: path, ID: "join-waitlist",
		Summary: "Join the waitlist of a drop", Status: http.StatusCreated,
		Description: "For a drop that is sold out and has a waitlist: the refusal of a claim then says `\"waitlist\":\"open\"`. Stock that comes back " +
			"is given or offered to the users who wait, in the order of joining, and each is told. The answer comes after the place is stored durably; a repetition changes nothing.",
		Also:  map[int]string{http.StatusOK: "The user was on the waitlist before."},
		Codes: []string{"template_not_found", "no_waitlist", "template_not_open", "not_started", "not_eligible", "ended", "stock_left", "limit_reached", "too_many_waits", "channel_unavailable", "user_erased"}},
		h.joinWaitlist)
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: path, ID: "get-wait", Summary: "Show the user's place on a waitlist",
		Codes: []string{"not_waiting"}}, h.readWait)
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Detached: true}, Method: http.MethodDelete, Path: path, ID: "leave-waitlist",
		Summary: "Leave the waitlist of a drop", Description: "A repetition changes nothing, and neither does leaving after a coupon was given. A coupon that is offered goes to the next user.",
		Codes: []string{"not_waiting"}}, h.leaveWaitlist)
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Detached: true}, Method: http.MethodPost, Path: path + "/accept", ID: "accept-offer",
		Summary: "Accept a coupon of the waitlist", Description: "For a drop with `\"waitlist\":\"offer\"`, while the place has an `accept_until`. The answer comes after the coupon is stored durably; a repetition returns the same coupon.",
		Codes: []string{"not_waiting", "no_offer", "offer_lapsed", "offer_taken", "template_not_open", "ended", "limit_reached", "household_limit", "user_erased"}}, h.acceptOffer)
}

func (h *handlers) joinWaitlist(ctx context.Context, in *struct {
	TemplateID string   `path:"template_id" pattern:"^[1-9][0-9]{0,18}$" doc:"The drop."`
	Channels   []string `query:"channels" maxItems:"5" nullable:"false" doc:"Over which the user is told of the coupon, separated by commas; the app's inbox if none is named." example:"[\"app\"]"`
}) (*waitAnswer, error) {
	id, err := pipeline.ParseID("path.template_id", in.TemplateID)
	if err != nil {
		return nil, err
	}
	wish := waitlist.Wish{TemplateID: id, UserID: pipeline.UserOf(ctx)}
	for _, name := range in.Channels {
		c, err := delivery.ParseChannel(name)
		if err != nil {
			return nil, delivery.ErrChannelUnavailable
		}
		wish.Channels |= delivery.ChannelSetOf(c)
	}
	place, joined, err := h.Waitlist.Join(ctx, wish)
	if err != nil {
		return nil, err
	}
	answer := &waitAnswer{Status: http.StatusOK, Body: waitJSON(place)}
	if joined {
		answer.Status = http.StatusCreated
	}
	return answer, nil
}

// joinQuickly answers PUT /waitlist/{template_id} without parameters, at less cost than the general way:
// in a rush every refused claim may be followed by one. The general way takes every other form.
func (h *handlers) joinQuickly(w http.ResponseWriter, r *http.Request, body []byte) bool {
	id, err := pipeline.ParseID("path.template_id", r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
	if err != nil || r.URL.RawQuery != "" || len(body) > 0 {
		return false
	}
	place, joined, err := h.Waitlist.Join(r.Context(), waitlist.Wish{TemplateID: id, UserID: pipeline.UserOf(r.Context())})
	if err != nil {
		h.Problem(r.Context(), err).Write(w)
		return true
	}
	w.Header()["Content-Type"] = pipeline.JSONType
	status := http.StatusOK
	if joined {
		status = http.StatusCreated
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(waitJSON(place))
	return true
}

func (h *handlers) readWait(ctx context.Context, in *waitPath) (*struct{ Body Wait }, error) {
	id, err := pipeline.ParseID("path.template_id", in.TemplateID)
	if err != nil {
		return nil, err
	}
	place, outlook, err := h.Waitlist.Waiter(ctx, id, pipeline.UserOf(ctx))
	if err != nil {
		return nil, err
	}
	answer := waitJSON(place)
	answer.Ahead, answer.Chance = string(outlook.Ahead), string(outlook.Chance)
	return &struct{ Body Wait }{answer}, nil
}

func (h *handlers) leaveWaitlist(ctx context.Context, in *waitPath) (*struct{ Body Wait }, error) {
	id, err := pipeline.ParseID("path.template_id", in.TemplateID)
	if err != nil {
		return nil, err
	}
	place, err := h.Waitlist.Leave(ctx, id, pipeline.UserOf(ctx))
	if err != nil {
		return nil, err
	}
	return &struct{ Body Wait }{waitJSON(place)}, nil
}

func (h *handlers) acceptOffer(ctx context.Context, in *waitPath) (*struct{ Body Wait }, error) {
	id, err := pipeline.ParseID("path.template_id", in.TemplateID)
	if err != nil {
		return nil, err
	}
	place, err := h.Waitlist.Accept(ctx, id, pipeline.UserOf(ctx))
	if err != nil {
		return nil, err
	}
	return &struct{ Body Wait }{waitJSON(place)}, nil
}

func waitJSON(w waitlist.Waiter) Wait {
	j := Wait{TemplateID: pipeline.Decimal(w.TemplateID), State: string(w.State), JoinedAt: w.JoinedAt.UTC(), ChangedAt: w.ChangedAt.UTC(),
		Channels: []string{}, Reason: w.Reason, Shared: w.Shared, Lapses: w.Lapses}
	if !w.OfferUntil.IsZero() {
		j.AcceptUntil = new(w.OfferUntil.UTC())
	}
	for _, c := range delivery.AllChannels() {
		if w.Channels.Has(c) {
			j.Channels = append(j.Channels, c.String())
		}
	}
	if w.CouponID != 0 {
		j.CouponID = pipeline.Decimal(w.CouponID)
	}
	return j
}
