package drops

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"dropbell/domain/template"
	"dropbell/web/api/parts"
	"dropbell/web/api/pipeline"
)

// Drop is a template as users may see it.
type Drop struct {
	ID           string    `json:"id" example:"1"`
	ShopNumber   string    `json:"shop_number" example:"10"`
	ShopName     string    `json:"shop_name" example:"Tea House"`
	Name         string    `json:"name" example:"20 off"`
	Description  string    `json:"description,omitempty"`
	State        string    `json:"state" enum:"scheduled,open,sold_out,paused,closed,cancelled" example:"scheduled"`
	OpensAt      time.Time `json:"opens_at" doc:"When the drop opens." example:"2027-01-01T12:00:00Z"`
	ClosesAt     time.Time `json:"closes_at" doc:"When the drop ends, or ended: also as soon as its coupons would have expired, or when staff closed it." example:"2027-01-02T12:00:00Z"`
	StockLeft    int64     `json:"stock_left" doc:"Coupons that are not issued." example:"100"`
	PerUserLimit int       `json:"per_user_limit" example:"1"`
	Household    int       `json:"household_limit,omitempty" doc:"How many coupons the users of one household can get together; absent = no limit." example:"2"`
	Protection   string    `json:"protection" enum:"off,standard,strict" doc:"off: a claim needs no pass. Otherwise POST /passes/{template_id} gives the pass." example:"off"`
	OpeningMode  string    `json:"opening_mode" enum:"first_come,shuffled,draw" doc:"first_come: claims from opens_at on. shuffled and draw: users enter until opens_at, and a draw decides; GET /draws/{id}/card has the window." example:"first_come"`
	parts.Discount
	Waitlist    string   `json:"waitlist,omitempty" enum:"open" doc:"The drop is sold out, and the user can join its waitlist."`
	ClaimURL    string   `json:"claim_url,omitempty" doc:"Where the coupon can be claimed."`
	Doors       bool     `json:"doors,omitempty" doc:"Groups of users have openings of their own: with a user's token door has that of the user." example:"true"`
	Door        *OwnDoor `json:"door,omitempty" doc:"With a user's token, for a drop that opens at several times: the user's own door."`
	SeriesID    string   `json:"series_id,omitempty" doc:"The series that the drop belongs to: PUT /series/{series_id}/reservation reserves reminders of each of its drops." example:"1"`
	LiveChannel string   `json:"live_channel,omitempty" doc:"The broadcast channel at Apple by which a Live Activity follows the drop: Activity.request(pushType: .channel(live_channel)). Absent where there is none." example:"c29tZUNoYW5uZWw="`
}

func (h *handlers) dropRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Access: pipeline.ForAnybody}, Method: http.MethodGet, Path: "/templates/{id}", ID: "get-template", Summary: "Show a drop", Description: "Needs no credentials. The answer may be a second old. With a user's token it also names the user's door, if the drop has doors: a door opens the drop for a group of users at an instant of its own.",
		Codes: []string{"template_not_found"}},
		pipeline.ByID(func(ctx context.Context, id int64) (*struct{ Body Drop }, error) {
			t, err := h.Reminders.Drop(ctx, id)
			if err != nil {
				return nil, err
			}
			drop := dropJSON(t, t.State(h.Now()))
			if drop.Door, err = h.ownDoor(ctx, t); err != nil {
				return nil, err
			}
			if h.LiveChannel != nil {
				if drop.LiveChannel, err = h.LiveChannel(ctx, t.ID); err != nil {
					return nil, err
				}
			}
			return &struct{ Body Drop }{drop}, nil
		}))
}

func dropJSON(t template.Template, state template.State) Drop {
	drop := Drop{ID: pipeline.Decimal(t.ID), ShopNumber: pipeline.Decimal(t.ShopNumber), ShopName: t.ShopName, Name: t.Name, Description: t.Description,
		State: string(state), OpensAt: t.OpensAt.UTC(), ClosesAt: t.OverAt().UTC(), StockLeft: t.StockLeft(),
		PerUserLimit: t.PerUserLimit, Household: t.HouseholdLimit, Protection: string(t.Protection), OpeningMode: cmp.Or(string(t.OpeningMode), string(template.FirstCome)), Discount: parts.DiscountOf(t.Spec), ClaimURL: t.ClaimAddress()}
	drop.Doors = len(t.Doors) > 0
	if t.SeriesID != 0 {
		drop.SeriesID = pipeline.Decimal(t.SeriesID)
	}
	if state == template.SoldOut && t.Waits() {
		drop.Waitlist = "open"
	}
	return drop
}
