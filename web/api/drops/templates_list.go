package drops

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/template"
	"dropbell/web/api/pipeline"
)

type templateFilter struct {
	State []string `query:"state" nullable:"false" doc:"Only these states, separated by commas." enum:"draft,scheduled,open,sold_out,paused,closed,cancelled"`
	Shop  string   `query:"shop" pattern:"^[1-9][0-9]{0,18}$" doc:"Only this shop."`
	Q     string   `query:"q" maxLength:"120" doc:"A part of the name or of the note, or the id."`
	From  string   `query:"from" doc:"Only openings from this instant on." example:"2027-01-01T00:00:00Z"`
	To    string   `query:"to" doc:"Only openings before this instant." example:"2027-02-01T00:00:00Z"`
	Order string   `query:"order" enum:"asc,desc" default:"desc" doc:"By opening."`
	Limit int      `query:"limit" minimum:"1" maximum:"200" default:"50"`
	After string   `query:"after" maxLength:"60" doc:"The value of next on the previous page."`
}

func (h *handlers) listTemplates(ctx context.Context, in *templateFilter) (*struct{ Body TemplateList }, error) {
	q, err := in.query()
	if err != nil {
		return nil, err
	}
	list, err := h.Templates.Templates(ctx, pipeline.ActorOf(ctx), q)
	if err != nil {
		return nil, err
	}
	next := pipeline.Next(list, in.Limit, func(last template.Template) string { return fmt.Sprintf("%d.%d", last.OpensAt.Unix(), last.ID) })
	return &struct{ Body TemplateList }{TemplateList{pipeline.Each(list, func(t template.Template) Template { return templateJSON(t, h.Now()) }), next}}, nil
}

func (in *templateFilter) query() (template.Query, error) {
	q := template.Query{Search: in.Q, Descending: in.Order == "desc", Limit: in.Limit}
	for _, s := range in.State {
		q.States = append(q.States, template.State(s))
	}
	errs := []error{pipeline.CheckText("query.q", in.Q)}
	if in.Shop != "" {
		shop, err := pipeline.ParseID("query.shop", in.Shop)
		q.Shops, errs = []int64{shop}, append(errs, err)
	}
	var err error
	q.From, err = pipeline.ParseInstant("query.from", in.From)
	errs = append(errs, err)
	q.To, err = pipeline.ParseInstant("query.to", in.To)
	errs = append(errs, err)
	q.After, err = parseCursor(in.After)
	return q, pipeline.Merge(append(errs, err)...)
}

// parseCursor reads the opening and id of the last template of a page.
func parseCursor(s string) (template.Cursor, error) {
	if s == "" {
		return template.Cursor{}, nil
	}
	opens, id, _ := strings.Cut(s, ".")
	second, err1 := strconv.ParseInt(opens, 10, 64)
	n, err2 := strconv.ParseInt(id, 10, 64)
	// The seconds of the years 1 to 9000.
	if err := errors.Join(err1, err2); err != nil || n <= 0 || second < -62135596800 || second > 221845392000 {
		return template.Cursor{}, pipeline.Refused("query.after", "must be the value of next on the previous page")
	}
	return template.Cursor{OpensAt: time.Unix(second, 0).UTC(), ID: n}, nil
}
