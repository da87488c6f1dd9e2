package shell

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// A NameKind is a kind of thing that fields name.
type NameKind string

// The kinds.
const (
	Drops     NameKind = "drops"
	Campaigns NameKind = "campaigns"
	People    NameKind = "people"
	Segments  NameKind = "segments"
)

// A Name is a thing that a text may mean.
type Name struct {
	ID   int64
	Name string
}

// Names returns at most limit objects whose name begins with or contains a text, as the viewer may
// see them.
type Names func(r *http.Request, kind NameKind, text string, limit int) ([]Name, error)

// PeopleNames returns the names of users by id; users without a name are left out.
type PeopleNames func(ctx context.Context, ids []user.ID) (map[user.ID]string, error)

// PeopleFrom sets the function that reads the names of the users on a page.
func (sh *Shell) PeopleFrom(n PeopleNames) { sh.people = n }

// NamePeople reads the names of the users on the page, which components show; see [ui.Person]. Without
// an answer the page shows numbers.
func (sh *Shell) NamePeople(r *http.Request, ids ...user.ID) {
	if len(ids) == 0 {
		return
	}
	names, err := sh.people(r.Context(), ids)
	if err != nil {
		sh.Log.WarnContext(r.Context(), "names of users could not be read", "error", err, "request", requestID(r))
		return
	}
	if !Actor(r).SeesContacts() {
		for id, name := range names {
			names[id] = user.MaskText(name)
		}
	}
	Frame(r).People = names
}

// NameEach is [Shell.NamePeople] for the rows of a list.
func NameEach[Row any](sh *Shell, r *http.Request, list []Row, who func(Row) user.ID) {
	var ids []user.ID
	for _, row := range list {
		if id := who(row); id != 0 {
			ids = append(ids, id)
		}
	}
	sh.NamePeople(r, ids...)
}

// NamesFrom sets the function by which fields look names up.
func (sh *Shell) NamesFrom(n Names) { sh.names = n }

// namesCompared is how many things of a similar name are compared with a text.
const namesCompared = 20

// Named returns the number of the object that the text of a field means. The text is a number, a
// name with its number as fields offer it, "Moon cake night (#12)", or the whole name of one
// object, in any case. An empty text is 0. Text that means no object, or several objects, breaks
// the rule of the field.
func (sh *Shell) Named(r *http.Request, kind NameKind, field, text string, broken *fault.Fields) int64 {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0
	}
	ref := TemplateRef(Narrow(text))
	if n, err := strconv.ParseInt(ref, 10, 64); err == nil && n > 0 {
		return n
	}
	list, err := sh.names(r, kind, text, namesCompared)
	if err != nil {
		broken.Add(field, "rule.name_unread", "the name could not be looked up; type the number")
		return 0
	}
	same := list[:0:0]
	for _, n := range list {
		if strings.EqualFold(strings.TrimSpace(n.Name), text) {
			same = append(same, n)
		}
	}
	switch {
	case len(same) == 1:
		return same[0].ID
	case len(same) > 1:
		broken.Add(field, "rule.name_several", "several have this name; choose a name from the list, or type its number")
	default:
		broken.Add(field, "rule.name_unknown", "nothing has this name; choose a name from the list, or type its number")
	}
	return 0
}

// DropNames returns the names of the drops with these ids, as far as the viewer may see them.
func (sh *Shell) DropNames(r *http.Request, ids []int64) map[string]string {
	names := map[string]string{}
	for _, id := range ids {
		number := strconv.FormatInt(id, 10)
		list, err := sh.names(r, Drops, number, namesCompared)
		if err != nil {
			return names // the numbers are shown instead
		}
		for _, n := range list {
			if n.ID == id {
				names[number] = n.Name
			}
		}
	}
	return names
}

// NamedUser is [Shell.Named] for users.
func (sh *Shell) NamedUser(r *http.Request, text string, broken *fault.Fields) user.ID {
	return user.ID(sh.Named(r, People, "user", text, broken))
}
