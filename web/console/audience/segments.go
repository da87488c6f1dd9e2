package audience

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	audiencepages "dropbell/views/pages/audience"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (h *handlers) listSegments(w http.ResponseWriter, r *http.Request) error {
	p, segments, err := h.segments(r)
	if err == nil {
		p.List, p.Paged, err = segments.Page(r)
	}
	if err != nil {
		return err
	}
	return h.Listed(w, r, p.Results(), p.Page())
}

// segments returns the segments and lists of users that the search finds, the last changed first.
func (h *handlers) segments(r *http.Request) (p audiencepages.Segments, l shell.List[segment.Segment, shell.Place], _ error) {
	p.Search = strings.TrimSpace(r.FormValue("q"))
	return p, shell.List[segment.Segment, shell.Place]{Keys: shell.Places("."), Read: func(after shell.Place, limit int) ([]segment.Segment, error) {
		q := segment.Query{Search: p.Search, Limit: limit}
		q.After.UpdatedAt, q.After.ID = after.At, after.ID
		return h.Segments.Segments(r.Context(), shell.Actor(r), q)
	}, KeyOf: func(g segment.Segment) shell.Place { return shell.Place{At: g.UpdatedAt, ID: g.ID} }, File: shell.FileOf(
		"segments", []string{"id", "name", "kind", "members", "counted_at", "version", "created_by", "created_at", "updated_at"}, func(g segment.Segment) []any {
			return []any{g.ID, g.Name, string(g.Kind), g.Members, g.CountedAt, g.Version, g.CreatedBy, g.CreatedAt, g.UpdatedAt}
		})}, nil
}

func (h *handlers) loadSegment(r *http.Request) (segment.Segment, error) {
	id, err := shell.PathID(r)
	if err != nil {
		return segment.Segment{}, err
	}
	return h.Segments.Segment(r.Context(), shell.Actor(r), id)
}

func (h *handlers) showSegment(w http.ResponseWriter, r *http.Request) error {
	g, err := h.loadSegment(r)
	if err != nil {
		return err
	}
	p := audiencepages.Segment{Segment: g}
	if p.Uses, err = h.Segments.Uses(r.Context(), shell.Actor(r), g.ID); err != nil {
		return err
	}
	if g.Kind == segment.ByRules {
		p.Estimate, p.Later = h.estimateOrLater(r, g.Rule)
		p.Names = h.DropNames(r, g.Rule.Templates())
	} else if p.Files, err = h.listFiles(r, g.ID); err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

// estimateOrLater estimates the reach if the address has the parameter. Otherwise it returns the
// address with the parameter, so that a page does not wait for the estimate.
func (h *handlers) estimateOrLater(r *http.Request, rule segment.Rule) (e *segment.Estimate, later string) {
	if r.URL.Query().Has("estimate") {
		return h.estimate(r, rule), ""
	}
	return nil, r.URL.Path + "?estimate=1"
}

// estimate returns nil if the number cannot be estimated quickly, or the rule is incomplete.
func (h *handlers) estimate(r *http.Request, rule segment.Rule) *segment.Estimate {
	e, err := h.Segments.Estimate(r.Context(), shell.Actor(r), rule)
	if err != nil {
		if fault.KindOf(err) == 0 {
			h.Log.ErrorContext(r.Context(), "estimate failed", "error", err)
		}
		return nil
	}
	return &e
}

func (h *handlers) newSegment(w http.ResponseWriter, r *http.Request) error {
	rule := segment.Rule{Match: segment.All, Rules: []segment.Rule{audiencepages.BlankCondition()}}
	p := audiencepages.SegmentForm{Rule: rule, RequestKey: rand.Text()}
	h.offerValues(r, &p)
	return h.Show(w, r, http.StatusOK, p.Page())
}

func (h *handlers) createSegment(w http.ResponseWriter, r *http.Request) error {
	return h.keepSegment(w, r, segment.Segment{}, func(spec segment.Spec) (segment.Segment, error) {
		return h.Segments.Create(r.Context(), shell.Actor(r), spec, shell.CreationKey(r))
	})
}

func (h *handlers) editSegment(w http.ResponseWriter, r *http.Request, g segment.Segment) error {
	p := audiencepages.SegmentForm{Segment: g, Name: g.Name, Rule: g.Rule}
	if p.Rule.Match == "" { // made through the API: the form begins with a group
		p.Rule = segment.Rule{Match: segment.All, Rules: []segment.Rule{g.Rule}}
	}
	if g.Kind == segment.ByRules {
		p.Estimate, p.Later = h.estimateOrLater(r, p.Rule)
		h.offerValues(r, &p)
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

// offerValues adds what the conditions of the form can be chosen from. Names that cannot be looked up
// in time are typed.
func (h *handlers) offerValues(r *http.Request, p *audiencepages.SegmentForm) {
	names, err := h.Segments.AttributeNames(r.Context(), shell.Actor(r))
	if err != nil && fault.KindOf(err) == 0 {
		h.Log.ErrorContext(r.Context(), "names of attributes not read", "error", err)
	}
	p.Attributes, p.Zones, p.Names = names, shell.Zones(""), h.DropNames(r, p.Rule.Templates())
}

func (h *handlers) saveSegment(w http.ResponseWriter, r *http.Request, g segment.Segment) error {
	version, _ := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	return h.keepSegment(w, r, g, func(spec segment.Spec) (segment.Segment, error) {
		return h.Segments.Save(r.Context(), shell.Actor(r), g.ID, version, spec)
	})
}

// keepSegment changes the tree according to the pressed button, or saves it. The form contains the
// whole tree, so that nothing is stored between two presses.
func (h *handlers) keepSegment(w http.ResponseWriter, r *http.Request, g segment.Segment, save func(segment.Spec) (segment.Segment, error)) error {
	p := audiencepages.SegmentForm{Segment: g, Name: r.PostFormValue("name"), Rule: segment.Everybody(), RequestKey: r.PostFormValue("request_key")}
	if g.Kind != segment.ByList {
		p.Rule = h.readRule(r)
	}
	if version, _ := strconv.ParseInt(r.PostFormValue("version"), 10, 64); version > 0 {
		p.Segment.Version = version
	}
	do := r.PostFormValue("do")
	if do != "save" {
		p.Rule = changeRule(p.Rule, do)
	}
	if g.Kind != segment.ByList {
		h.offerValues(r, &p)
	}
	if do != "save" {
		if err := p.Rule.Check(); err == nil {
			p.Estimate = h.estimate(r, p.Rule)
		} else if do == "estimate" { // the member has not finished the tree yet
			p.Errors = shell.FieldsOf(err)
		}
		return h.Either(w, r, p.Fragment(), p.Page())
	}
	saved, err := save(segment.Spec{Name: p.Name, Rule: p.Rule})
	if errors.Is(err, fault.ErrStale) {
		if p.Segment, err = h.loadSegment(r); err != nil {
			return err
		}
		p.Stale = true
		return h.Show(w, r, http.StatusConflict, p.Page())
	}
	if p.Errors = shell.FieldsOf(err); p.Errors != nil {
		return h.Show(w, r, http.StatusUnprocessableEntity, p.Page())
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, fmt.Sprintf("/segments/%d", saved.ID), ui.Good, shell.Say(r, "segments.saved"))
}

func (h *handlers) countSegment(w http.ResponseWriter, r *http.Request, id int64) error {
	j, err := h.Segments.Count(r.Context(), shell.Actor(r), id, "")
	if err != nil {
		return err
	}
	return h.Done(w, r, pageparts.Work{Job: j}.URL(), ui.Info, shell.Say(r, "segments.counting"))
}

func (h *handlers) cloneSegment(w http.ResponseWriter, r *http.Request, g segment.Segment) error {
	name := []rune(shell.Say(r, "segments.copy_of", g.Name))
	copied, err := h.Segments.Clone(r.Context(), shell.Actor(r), g.ID, string(name[:min(len(name), segment.MaxName)]))
	if err != nil {
		return err
	}
	return h.Done(w, r, fmt.Sprintf("/segments/%d/edit", copied.ID), ui.Good, shell.Say(r, "segments.cloned"))
}

func (h *handlers) confirmDeleteSegment(w http.ResponseWriter, r *http.Request, g segment.Segment) error {
	if err := shell.Actor(r).May(staff.ManageUsers, 0); err != nil {
		return err
	}
	uses, err := h.Segments.Uses(r.Context(), shell.Actor(r), g.ID)
	if err != nil {
		return err
	}
	l, url := shell.Frame(r).Locale, fmt.Sprintf("/segments/%d", g.ID)
	var points []string
	for _, u := range uses {
		if !u.Ended {
			points = append(points, l.T("segments.delete.used", u.Name))
		}
	}
	submit := ""
	if len(points) == 0 {
		points, submit = []string{l.T("segments.delete.1"), l.T("segments.delete.2")}, l.T("segments.delete")
	}
	return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "segments", Crumbs: []ui.Crumb{{Label: l.T("nav.segments"), URL: "/segments"}, {Label: g.Name, URL: url}},
		ConfirmProps: ui.ConfirmProps{Title: l.T("segments.delete.title", g.Name), Points: points, Action: url + "/delete", Cancel: url, Submit: submit, Kind: "danger", NoReason: true}})
}

func (h *handlers) deleteSegment(w http.ResponseWriter, r *http.Request, id int64) error {
	err := h.Segments.Delete(r.Context(), shell.Actor(r), id)
	if errors.Is(err, segment.ErrInUse) {
		return h.Done(w, r, fmt.Sprintf("/segments/%d", id), ui.Bad, shell.Say(r, "fault.segment_in_use"))
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, "/segments", ui.Good, shell.Say(r, "segments.deleted"))
}

// readRule reads the tree in the form: the field names of a node begin with its path, such as
// "r.0.2".
func (h *handlers) readRule(r *http.Request) segment.Rule {
	if rule, ok := h.readNode(r, "r", 0); ok && rule.Match != "" {
		return rule
	}
	return segment.Everybody()
}

// maxNodes bounds the nodes that are read at one level; the check reports with a better message
// that there are too many.
const maxNodes = segment.MaxConditions + 10

func (h *handlers) readNode(r *http.Request, path string, depth int) (segment.Rule, bool) {
	if depth > segment.MaxDepth+1 {
		return segment.Rule{}, false
	}
	if m := segment.Match(r.PostFormValue(path + ".match")); m != "" {
		g := segment.Rule{Match: m}
		for i := range maxNodes {
			if sub, ok := h.readNode(r, fmt.Sprintf("%s.%d", path, i), depth+1); ok {
				g.Rules = append(g.Rules, sub)
			}
		}
		return g, true
	}
	field := segment.Field(r.PostFormValue(path + ".field"))
	if field == "" {
		return segment.Rule{}, false
	}
	x := segment.Condition{Field: field, Op: segment.Op(r.PostFormValue(path + ".op"))}
	value, known := segment.ValueOf(field, x.Op)
	if !known { // the field was changed: its operators are others
		if ops := segment.Ops(field); len(ops) > 0 {
			x.Op = ops[0]
			value, _ = segment.ValueOf(field, x.Op)
		}
	}
	if field == segment.Attribute {
		x.Name = strings.TrimSpace(r.PostFormValue(path + ".name"))
	}
	x.Values = readValues(value, r.PostForm[path+".value"])
	if value == segment.TemplateIDs {
		x.Values = h.dropNumbers(r, x.Values)
	}
	was := segment.Value(r.PostFormValue(path + ".kind"))
	if !known || was != "" && was != value {
		x.Values = fitting(x.Values, was, value)
	}
	return segment.Rule{Condition: x}, true
}

// dropNumbers returns the numbers of the drops given by number or by name. A value that names no
// drop stays unchanged, and the check reports it.
func (h *handlers) dropNumbers(r *http.Request, values []string) []string {
	for i, v := range values {
		var broken fault.Fields
		if n := h.Named(r, shell.Drops, "value", v, &broken); n != 0 {
			values[i] = strconv.FormatInt(n, 10)
		}
	}
	return values
}

// fitting returns the values that are also valid for the kind now. Values of a choice are not kept
// as text.
func fitting(values []string, was, now segment.Value) []string {
	chosen := func(v segment.Value) bool { return v == segment.ContactKind || v == segment.ChannelName }
	if chosen(was) && !chosen(now) {
		return nil
	}
	return slices.DeleteFunc(values, func(v string) bool { return !now.Takes(v) })
}

// readValues reads the typed values: one value, or several separated by commas.
func readValues(kind segment.Value, typed []string) []string {
	if kind == segment.NoValue || len(typed) == 0 {
		return nil
	}
	if !kind.Many() {
		if v := strings.TrimSpace(typed[0]); v != "" {
			return []string{v}
		}
		return nil
	}
	var list []string
	for _, v := range strings.FieldsFunc(strings.Join(typed, ","), func(c rune) bool { return strings.ContainsRune(",;，、\n", c) }) {
		if v = strings.TrimSpace(v); v != "" && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// changeRule applies a button of the tree: "condition:r.0", "group:r", "remove:r.0.1",
// "without:r.0.1:de". Any other text changes nothing.
func changeRule(rule segment.Rule, do string) segment.Rule {
	what, path, _ := strings.Cut(do, ":")
	path, value, _ := strings.Cut(path, ":")
	steps := strings.Split(path, ".")
	if steps[0] != "r" {
		return rule
	}
	return changeAt(rule, steps[1:], what, value)
}

func changeAt(rule segment.Rule, steps []string, what, value string) segment.Rule {
	if len(steps) == 0 {
		switch {
		case rule.Match == "" && what == "without":
			rule.Condition.Values = slices.DeleteFunc(slices.Clone(rule.Condition.Values), func(v string) bool { return v == value })
		case rule.Match == "":
		case what == "condition":
			rule.Rules = append(slices.Clone(rule.Rules), audiencepages.BlankCondition())
		case what == "group":
			rule.Rules = append(slices.Clone(rule.Rules), segment.Rule{Match: segment.Any, Rules: []segment.Rule{audiencepages.BlankCondition()}})
		}
		return rule
	}
	i, err := strconv.Atoi(steps[0])
	if err != nil || i < 0 || i >= len(rule.Rules) {
		return rule
	}
	rule.Rules = slices.Clone(rule.Rules)
	if len(steps) == 1 && what == "remove" {
		rule.Rules = slices.Delete(rule.Rules, i, i+1)
		return rule
	}
	rule.Rules[i] = changeAt(rule.Rules[i], steps[1:], what, value)
	return rule
}
