package audience

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/segment"
	"dropbell/web/api/parts"
	"dropbell/web/api/pipeline"
)

// SegmentWish is the part of a segment that a client may set.
type SegmentWish struct {
	Name string     `json:"name" minLength:"1" maxLength:"120" example:"Gold members in China"`
	Rule parts.Rule `json:"rule"`
}

// SegmentPatch is a change: absent fields stay as they are.
type SegmentPatch struct {
	Name pipeline.Optional[string]     `json:"name,omitempty" maxLength:"120"`
	Rule pipeline.Optional[parts.Rule] `json:"rule,omitempty"`
}

// Segment is an audience.
type Segment struct {
	ID        string     `json:"id" example:"12"`
	Name      string     `json:"name"`
	Kind      string     `json:"kind" enum:"rules,list"`
	Rule      parts.Rule `json:"rule"`
	Version   int64      `json:"version"`
	Members   *int64     `json:"members,omitempty" doc:"As counted last; absent if it was not counted since the rule changed."`
	CountedAt *time.Time `json:"counted_at,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
	UsedBy    []Use      `json:"used_by,omitempty" nullable:"false" doc:"Campaigns that refer to it; in the answer about one segment only."`
}

// Use is a campaign that refers to a segment.
type Use struct {
	CampaignID string `json:"campaign_id"`
	Name       string `json:"name"`
	State      string `json:"state" enum:"draft,scheduled,running,paused,finished,cancelled,failed"`
	Keeps      bool   `json:"keeps_members,omitempty" doc:"No user can be added to the list until the campaign's audience is read."`
}

// SegmentList is one page.
type SegmentList struct {
	Segments []Segment `json:"segments" nullable:"false"`
	Next     string    `json:"next,omitempty"`
}

// Estimate is about how many users a rule means.
type Estimate struct {
	Members int64 `json:"members" example:"182300"`
	Margin  int64 `json:"margin" doc:"The true number lies within members ± margin in 95 of 100 cases." example:"4100"`
	Users   int64 `json:"users" doc:"How many users there are, about."`
	Looked  int64 `json:"looked" doc:"How many users were read."`
	Exact   bool  `json:"exact"`
}

// StartedJob names work in the background.
type StartedJob struct {
	JobID     string `json:"job_id" example:"7"`
	SegmentID string `json:"segment_id" example:"12"`
}

// SegmentField is something that a condition can ask for.
type SegmentField struct {
	Field string             `json:"field" example:"attribute"`
	Named bool               `json:"named" doc:"Whether the condition also has a name, that of the attribute."`
	Ops   []SegmentFieldsOps `json:"ops" nullable:"false"`
}

// SegmentFieldsOps is an operator of a field.
type SegmentFieldsOps struct {
	Op     string `json:"op" example:"is"`
	Values string `json:"values" doc:"The kind of values that the field takes." example:"text"`
	Many   bool   `json:"many" doc:"Whether it takes more than one."`
}

// SegmentFields is everything that can be asked for.
type SegmentFields struct {
	Fields []SegmentField `json:"fields" nullable:"false"`
}

type segmentAnswer = pipeline.Versioned[Segment]

type startedAnswer struct{ Body StartedJob }

func (h *handlers) segmentRoutes() {
	const example = `{"name":"Gold members","rule":{"all":[{"field":"attribute","name":"tier","op":"is","values":["gold"]}]}}`
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/segment-fields", "list-segment-fields", "List the fields that the rules of segments can use", pipeline.Route{}), h.segmentFields)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/segments", "list-segments", "List segments, the latest changed first", pipeline.Route{}), h.listSegments)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/segments", "create-segment", "Create a segment by rules",
		pipeline.Route{Status: http.StatusCreated, Example: example}), h.createSegment)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/segments/estimate", "estimate-segment", "Say about how many users a rule means",
		pipeline.Route{Traits: pipeline.Traits{Reads: true}, Example: `{"rule":{"all":[]}}`, Codes: []string{"estimate_unavailable"},
			Description: "Looks at a sample for a fraction of a second, whatever the number of users; a small table is counted."}), h.estimateSegment)
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/segments/{id}", "get-segment", "Show a segment",
		pipeline.Route{Codes: []string{"segment_not_found"}}), pipeline.ByID(h.getSegment))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPatch, "/admin/segments/{id}", "change-segment", "Change a segment",
		pipeline.Route{Example: `{"name":"Gold members"}`, Codes: []string{"segment_not_found", "segment_is_list", "precondition_required", "stale_version"}}), pipeline.Patching(h.changeSegment))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodDelete, "/admin/segments/{id}", "delete-segment", "Delete a segment or list that no campaign needs any more",
		pipeline.Route{Status: http.StatusNoContent, Codes: []string{"segment_not_found", "segment_in_use"}}), pipeline.ByID(h.deleteSegment))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPost, "/admin/segments/{id}/count", "count-segment", "Count a segment's members exactly, in the background",
		pipeline.Route{Status: http.StatusAccepted, Codes: []string{"segment_not_found", "segment_is_list"}}), pipeline.ByID(h.countSegment))
}

func (h *handlers) segmentFields(ctx context.Context, _ *struct{}) (*struct{ Body SegmentFields }, error) {
	var all SegmentFields
	for _, f := range segment.Fields() {
		field := SegmentField{Field: string(f), Named: f == segment.Attribute}
		for _, op := range segment.Ops(f) {
			v, _ := segment.ValueOf(f, op)
			field.Ops = append(field.Ops, SegmentFieldsOps{string(op), string(v), v.Many()})
		}
		all.Fields = append(all.Fields, field)
	}
	return &struct{ Body SegmentFields }{all}, nil
}

func (h *handlers) listSegments(ctx context.Context, in *struct {
	Q     string `query:"q" maxLength:"120" doc:"A part of the name, or the id."`
	Kind  string `query:"kind" enum:"rules,list"`
	Limit int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	After string `query:"after" maxLength:"60" doc:"The value of next on the previous page."`
}) (*struct{ Body SegmentList }, error) {
	cursor, err := segmentCursor(in.After)
	if err := pipeline.Merge(err, pipeline.CheckText("query.q", in.Q)); err != nil {
		return nil, err
	}
	list, err := h.Segments.Segments(ctx, pipeline.ActorOf(ctx), segment.Query{Search: in.Q, Kind: segment.Kind(in.Kind), After: cursor, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	next := pipeline.Next(list, in.Limit, func(last segment.Segment) string { return fmt.Sprintf("%d.%d", last.UpdatedAt.UnixMicro(), last.ID) })
	return &struct{ Body SegmentList }{SegmentList{pipeline.Each(list, segmentJSON), next}}, nil
}

func segmentCursor(s string) (c segment.Cursor, err error) {
	if s == "" {
		return c, nil
	}
	at, id, _ := strings.Cut(s, ".")
	micros, err1 := strconv.ParseInt(at, 10, 64)
	c.ID, err = strconv.ParseInt(id, 10, 64)
	if err1 != nil || err != nil || c.ID <= 0 || micros < 0 || micros > 221845392000_000_000 {
		return c, pipeline.Refused("query.after", "must be the value of next on the previous page")
	}
	c.UpdatedAt = time.UnixMicro(micros).UTC()
	return c, nil
}

func (h *handlers) createSegment(ctx context.Context, in *struct{ Body SegmentWish }) (*segmentAnswer, error) {
	rule, err := segment.Parse(in.Body.Rule)
	if err != nil {
		return nil, err
	}
	g, err := h.Segments.Create(ctx, pipeline.ActorOf(ctx), segment.Spec{Name: in.Body.Name, Rule: rule}, pipeline.RequestKey(ctx))
	return answered(g), err
}

func (h *handlers) estimateSegment(ctx context.Context, in *struct {
	Body struct {
		Rule parts.Rule `json:"rule"`
	} `nameHint:"EstimateWish"`
}) (*struct{ Body Estimate }, error) {
	rule, err := segment.Parse(in.Body.Rule)
	if err != nil {
		return nil, err
	}
	e, err := h.Segments.Estimate(ctx, pipeline.ActorOf(ctx), rule)
	return &struct{ Body Estimate }{Estimate(e)}, err
}

func (h *handlers) getSegment(ctx context.Context, id int64) (*segmentAnswer, error) {
	g, err := h.Segments.Segment(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	uses, err := h.Segments.Uses(ctx, pipeline.ActorOf(ctx), id)
	answer := answered(g)
	for _, u := range uses {
		answer.Body.UsedBy = append(answer.Body.UsedBy, Use{pipeline.Decimal(u.CampaignID), u.Name, u.State, u.Keeps})
	}
	return answer, err
}

func (h *handlers) changeSegment(ctx context.Context, id, version int64, patch SegmentPatch) (*segmentAnswer, error) {
	old, err := h.Segments.Segment(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	spec := segment.Spec{Name: old.Name, Rule: old.Rule}
	patch.Name.Into(&spec.Name)
	if patch.Rule.Set {
		if old.Kind == segment.ByList {
			return nil, segment.ErrIsList
		}
		if spec.Rule, err = segment.Parse(patch.Rule.Value); err != nil {
			return nil, err
		}
	}
	g, err := h.Segments.Save(ctx, pipeline.ActorOf(ctx), id, version, spec)
	return answered(g), err
}

func (h *handlers) deleteSegment(ctx context.Context, id int64) (*struct{}, error) {
	return &struct{}{}, h.Segments.Delete(ctx, pipeline.ActorOf(ctx), id)
}

func (h *handlers) countSegment(ctx context.Context, id int64) (*startedAnswer, error) {
	j, err := h.Segments.Count(ctx, pipeline.ActorOf(ctx), id, pipeline.RequestKey(ctx))
	return &startedAnswer{StartedJob{pipeline.Decimal(j.ID), pipeline.Decimal(id)}}, err
}

func answered(g segment.Segment) *segmentAnswer {
	return pipeline.AtVersion(g.Version, segmentJSON(g))
}

func segmentJSON(g segment.Segment) Segment {
	rule, err := json.Marshal(g.Rule)
	if err != nil {
		rule = []byte("{}") // strings only: cannot happen
	}
	return Segment{ID: pipeline.Decimal(g.ID), Name: g.Name, Kind: string(g.Kind), Rule: rule, Version: g.Version, Members: g.Members,
		CountedAt: pipeline.UTC(g.CountedAt), CreatedAt: g.CreatedAt.UTC(), UpdatedAt: g.UpdatedAt.UTC()}
}
