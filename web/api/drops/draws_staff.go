package drops

import (
	"context"
	"net/http"

	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

// DrawDesk are the use cases of staff about draws; see [draw.Desk].
type DrawDesk interface {
	Figures(ctx context.Context, by staff.Actor, templateID int64, typed string) (complete bool, err error)
	Strike(ctx context.Context, by staff.Actor, templateID int64, who user.ID, reason string) error
}

// DrawFigures are the figures of a public draw.
type DrawFigures struct {
	Figures string `json:"figures" minLength:"1" maxLength:"1000" doc:"Whole numbers in the order in which they were published, separated by spaces." example:"4 11 23 30 41 47"`
}

// DrawFiguresState says whether the figures decide already.
type DrawFiguresState struct {
	Complete bool `json:"complete" doc:"Two members gave the same figures; the draw is being made."`
}

// DrawStrike names an entry that cannot win.
type DrawStrike struct {
	UserID string `json:"user_id" pattern:"^[1-9][0-9]{0,18}$" doc:"Whose entry is struck." example:"1001"`
	Reason string `json:"reason" minLength:"1" maxLength:"200" doc:"Public; it must not name the user." example:"Employee of the shop"`
}

func (h *handlers) drawStaffRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/draws/{id}/figures", "give-draw-figures", "Give the figures of a public draw",
		pipeline.Route{Description: "After the seal. The draw is made once two different members or keys gave the same figures.",
			Codes: []string{"template_not_found", "draw_not_found", "figures_differ", "invalid_transition"}, Example: `{"figures":"4 11 23 30 41 47"}`}), h.giveFigures)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/draws/{id}/strikes", "strike-draw-entry", "Strike an entry of a draw",
		pipeline.Route{Status: http.StatusNoContent, Description: "The entry cannot win. Before the seal it is left out of the list, and the seal counts it by its reason. After the seal its ticket stays in the list, " +
			"the result names it with the reason, and the next ticket in the order moves up.",
			Codes: []string{"template_not_found", "draw_not_found", "not_entered", "entry_struck", "coupon_not_usable"}, Example: `{"user_id":"1001","reason":"Employee of the shop"}`}), h.strikeEntry)
}

func (h *handlers) giveFigures(ctx context.Context, in *struct {
	pipeline.Ref
	Body DrawFigures
}) (*struct{ Body DrawFiguresState }, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	complete, err := h.DrawDesk.Figures(ctx, pipeline.ActorOf(ctx), id, in.Body.Figures)
	return &struct{ Body DrawFiguresState }{DrawFiguresState{complete}}, err
}

func (h *handlers) strikeEntry(ctx context.Context, in *struct {
	pipeline.Ref
	Body DrawStrike
}) (*struct{}, error) {
	id, err1 := pipeline.ParseID("path.id", in.ID)
	who, err2 := pipeline.ParseID("body.user_id", in.Body.UserID)
	if err := pipeline.Merge(err1, err2); err != nil {
		return nil, err
	}
	return nil, h.DrawDesk.Strike(ctx, pipeline.ActorOf(ctx), id, user.ID(who), in.Body.Reason)
}
