package shell

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/ui"
)

// Templates finds a template that the actor may see. [template.ErrNotFound] and
// [staff.ErrForbidden] say that there is no such template.
type Templates interface {
	Template(ctx context.Context, by staff.Actor, id int64) (template.Template, error)
}

// TemplateCrumbs lead from the list of templates to the page of one.
func TemplateCrumbs(r *http.Request, t template.Template) []ui.Crumb {
	return []ui.Crumb{{Label: Say(r, "nav.templates"), URL: "/templates"}, {Label: t.Name, URL: TemplateURL(t.ID)}}
}

// TemplateURL is the page of the template.
func TemplateURL(id int64) string { return "/templates/" + strconv.FormatInt(id, 10) }

// TemplateOf returns a function that returns the template in the address of a request.
func TemplateOf(from Templates) func(*http.Request) (template.Template, error) {
	return func(r *http.Request) (template.Template, error) {
		id, err := PathID(r)
		if err != nil {
			return template.Template{}, err
		}
		return from.Template(r.Context(), Actor(r), id)
	}
}

// OwnTemplate is [TemplateOf] for members who may change the template.
func OwnTemplate(from Templates) func(*http.Request) (template.Template, error) {
	return func(r *http.Request) (template.Template, error) {
		t, err := TemplateOf(from)(r)
		if err != nil {
			return t, err
		}
		return t, Actor(r).May(staff.ManageTemplates, t.ShopNumber)
	}
}

// VisibleTemplate returns the template if the viewer may see it, else nil.
func VisibleTemplate(r *http.Request, from Templates, id int64) (*template.Template, error) {
	if id <= 0 {
		return nil, nil
	}
	t, err := from.Template(r.Context(), Actor(r), id)
	switch {
	case err == nil:
		return &t, nil
	case errors.Is(err, template.ErrNotFound), errors.Is(err, staff.ErrForbidden):
		return nil, nil
	}
	return nil, err
}

var numberAtEnd = regexp.MustCompile(`^(?:.*\(#|#)?([0-9]{1,19})\)?$`)

// TemplateRef returns the number in a template field's text: a number, or a name with its number.
// Other text is returned unchanged.
func TemplateRef(typed string) string {
	if m := numberAtEnd.FindStringSubmatch(strings.TrimSpace(typed)); m != nil {
		return m[1]
	}
	return typed
}

// Compared returns the drop that the request names to compare t with; nil if it names none that the
// member may see and that coupons of could be claimed.
func Compared(r *http.Request, from Templates, t template.Template) (*template.Template, error) {
	id, err := strconv.ParseInt(r.FormValue("compare"), 10, 64)
	if err != nil || id <= 0 || id == t.ID {
		return nil, nil
	}
	other, err := from.Template(r.Context(), Actor(r), id)
	switch {
	case fault.KindOf(err) == fault.NotFound, fault.KindOf(err) == fault.Denied:
		return nil, nil
	case err != nil:
		return nil, err
	case other.Stored == template.Draft:
		return nil, nil
	}
	return &other, nil
}
