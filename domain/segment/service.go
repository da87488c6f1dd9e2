package segment

import (
	"context"
	"fmt"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
)

// Store keeps segments. Saves record the entry in the same transaction.
type Store interface {
	TemplateStore
	// Segment returns [ErrNotFound] if there is none, or it was deleted.
	Segment(ctx context.Context, id int64) (Segment, error)
	// Segments lists the latest changed first.
	Segments(ctx context.Context, q Query) ([]Segment, error)
	// CreateSegment stores a new one and returns it with its id. A second one
	// with the same request key, unless that is empty, is the first.
	CreateSegment(ctx context.Context, s Segment, requestKey string, e staff.Entry) (Segment, error)
	// SaveSegment changes name and rule if the stored version is s's own, else
	// it returns [fault.ErrStale] or [ErrNotFound]. A changed rule forgets the
	// count.
	SaveSegment(ctx context.Context, s Segment, e staff.Entry) (Segment, error)
	// DeleteSegment returns [ErrInUse] if something that has not ended refers
	// to it, else deletes it for good.
	DeleteSegment(ctx context.Context, id int64, e staff.Entry) error
	// CloneSegment copies the segment, a list with its members.
	CloneSegment(ctx context.Context, id int64, name string, e staff.Entry) (Segment, error)
	// Uses lists what has not ended first, the newest first.
	Uses(ctx context.Context, id int64) ([]Use, error)
	// FillList stores the job that adds to the list as [job.Store.StartJob]
	// does, or returns [ErrListInUse] while a campaign keeps the list. Of a
	// file and a publication at the same moment one is refused.
	FillList(ctx context.Context, id int64, j job.Job, requestKey string, e staff.Entry) (job.Job, error)
	// Files are the jobs that fill the list, at most limit of them, the latest
	// first.
	Files(ctx context.Context, id int64, limit int) ([]job.Job, error)
	// EstimateRule answers within a fraction of a second, however many users
	// there are.
	EstimateRule(ctx context.Context, r Rule) (Estimate, error)
}

// Jobs starts work in the background.
type Jobs interface {
	Start(ctx context.Context, by staff.Actor, n job.New, needs staff.Permission) (job.Job, error)
}

// Kinds of the jobs that this room starts.
const (
	CountJob = "segment.count"
	ListJob  = "segment.list"
)

// Service holds the use cases around segments. Segments belong to no shop: staff who
// may look at users may look at segments, staff who may change users may change them.
// Staff who are limited to shops name and count templates of these shops only.
type Service struct {
	Store Store
	Jobs  Jobs
	// Tables opens the files of lists.
	Tables job.Tables
}

// Spec is what staff decide about a segment by rules.
type Spec struct {
	Name string
	Rule Rule
}

func (s Spec) check() error {
	e := checkName(s.Name)
	if err := s.Rule.Check(); err != nil {
		e.List = append(e.List, err.(*fault.Fields).List...) // Check returns nothing else
	}
	return e.Err()
}

// Segment returns one segment, or [ErrNotFound].
func (s *Service) Segment(ctx context.Context, by staff.Actor, id int64) (Segment, error) {
	if err := by.May(staff.View, 0); err != nil {
		return Segment{}, err
	}
	return s.Store.Segment(ctx, id)
}

// Segments lists segments, the latest changed first.
func (s *Service) Segments(ctx context.Context, by staff.Actor, q Query) ([]Segment, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return s.Store.Segments(ctx, q)
}

// Uses lists what refers to the segment, what has not ended first.
func (s *Service) Uses(ctx context.Context, by staff.Actor, id int64) ([]Use, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return s.Store.Uses(ctx, id)
}

// maxFiles is how many files of a list are shown.
const maxFiles = 20

// Files returns what became of the files that were added to the list last, the
// latest first; none for a segment by rules.
func (s *Service) Files(ctx context.Context, by staff.Actor, id int64) ([]job.Job, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return s.Store.Files(ctx, id, maxFiles)
}

// Create stores a segment by rules. Asked again with the same request key it
// returns what that made; without a key, "", it makes another. It returns
// [staff.ErrForbidden] or a [fault.Fields].
func (s *Service) Create(ctx context.Context, by staff.Actor, spec Spec, requestKey string) (Segment, error) {
	if err := by.May(staff.ManageUsers, 0); err != nil {
		return Segment{}, err
	}
	if err := s.checkSpec(ctx, by, spec); err != nil {
		return Segment{}, err
	}
	n := Segment{Name: strings.TrimSpace(spec.Name), Kind: ByRules, Rule: spec.Rule, CreatedBy: createdBy(by)}
	return s.Store.CreateSegment(context.WithoutCancel(ctx), n, requestKey, entry(by, "segment.create", 0, nil, shown(n)))
}

// CreateList stores an empty list and starts the job that fills it from the
// uploaded file; without one, 0, there is no job. Asked again with the same
// request key it returns what that made; without a key, "", it makes another.
// It returns [staff.ErrForbidden], [job.ErrUploadNotFound] or a [fault.Fields],
// also about a "file" that holds no ids; nothing is stored then.
func (s *Service) CreateList(ctx context.Context, by staff.Actor, name string, uploadID int64, requestKey string) (Segment, job.Job, error) {
	if err := by.May(staff.ManageUsers, 0); err != nil {
		return Segment{}, job.Job{}, err
	}
	e := checkName(name)
	if uploadID != 0 {
		if err := s.look(ctx, uploadID); err != nil {
			why, ok := err.(*fault.Fields)
			if !ok {
				return Segment{}, job.Job{}, err
			}
			e.List = append(e.List, why.List...)
		}
	}
	if err := e.Err(); err != nil {
		return Segment{}, job.Job{}, err
	}
	n := Segment{Name: strings.TrimSpace(name), Kind: ByList, Rule: Everybody(), CreatedBy: createdBy(by)}
	list, err := s.Store.CreateSegment(context.WithoutCancel(ctx), n, requestKey, entry(by, "segment.create", 0, nil, shown(n)))
	if err != nil || uploadID == 0 {
		return list, job.Job{}, err
	}
	j, err := s.fill(ctx, by, list, uploadID, requestKey)
	return list, j, err
}

// MayAdd returns the list if users can be added to it now, so that a file is not
// uploaded in vain, else [ErrIsRules] for a segment that is no list or
// [ErrListInUse] while a campaign keeps it from changing.
func (s *Service) MayAdd(ctx context.Context, by staff.Actor, id int64) (Segment, error) {
	if err := by.May(staff.ManageUsers, 0); err != nil {
		return Segment{}, err
	}
	list, err := s.Store.Segment(ctx, id)
	if err != nil {
		return list, err
	}
	if list.Kind != ByList {
		return list, ErrIsRules
	}
	uses, err := s.Store.Uses(ctx, id)
	if err != nil {
		return list, err
	}
	for _, u := range uses {
		if u.Keeps {
			return list, KeptBy(u.Name)
		}
	}
	return list, nil
}

// KeptBy returns [ErrListInUse] with the name of the campaign that keeps a list.
func KeptBy(campaign string) error {
	return ErrListInUse.Because("the campaign “%s” is for this list; no user can be added until its audience is read", campaign)
}

// AddFile adds the ids of another file to a list. Asked again with the same
// request key it returns the job of the first time; without a key, "", the same
// upload is added once. It returns the errors of [Service.MayAdd], and a
// [fault.Fields] about a "file" that holds no ids.
func (s *Service) AddFile(ctx context.Context, by staff.Actor, id, uploadID int64, requestKey string) (job.Job, error) {
	list, err := s.MayAdd(ctx, by, id)
	if err != nil {
		return job.Job{}, err
	}
	if err := s.look(ctx, uploadID); err != nil {
		return job.Job{}, err
	}
	return s.fill(ctx, by, list, uploadID, requestKey)
}

// fill starts the job that reads the upload. A repeated request uploads the file
// again, so only its idempotency key shows that it is the same request.
func (s *Service) fill(ctx context.Context, by staff.Actor, list Segment, uploadID int64, requestKey string) (job.Job, error) {
	n := job.New{Kind: ListJob, Title: list.Name, UploadID: uploadID, Params: params(list), RequestKey: fmt.Sprintf("%d:%d", list.ID, uploadID)}
	if requestKey != "" {
		n.RequestKey = fmt.Sprintf("%d:key %s", list.ID, requestKey)
	}
	j, e, err := n.Prepare(by, staff.ManageUsers)
	if err != nil {
		return j, err
	}
	return s.Store.FillList(context.WithoutCancel(ctx), list.ID, j, n.RequestKey, e)
}

// Save changes a segment by rules, if it has not changed since version. It
// returns [fault.ErrStale], [ErrNotFound], [ErrIsList] if the rule of a list is
// to be changed, or a [fault.Fields]. The name of a list may change.
func (s *Service) Save(ctx context.Context, by staff.Actor, id, version int64, spec Spec) (Segment, error) {
	if err := by.May(staff.ManageUsers, 0); err != nil {
		return Segment{}, err
	}
	before, err := s.Store.Segment(ctx, id)
	if err != nil {
		return Segment{}, err
	}
	if before.Kind == ByList {
		if len(spec.Rule.Rules) > 0 || spec.Rule.Match == "" {
			return Segment{}, ErrIsList
		}
		spec.Rule = before.Rule
	}
	if err := s.checkSpec(ctx, by, spec); err != nil {
		return Segment{}, err
	}
	after := before
	after.Name, after.Rule, after.Version = strings.TrimSpace(spec.Name), spec.Rule, version
	return s.Store.SaveSegment(context.WithoutCancel(ctx), after, entry(by, "segment.save", id, shown(before), shown(after)))
}

// Delete removes a segment that nothing needs any more, else it returns
// [ErrInUse].
func (s *Service) Delete(ctx context.Context, by staff.Actor, id int64) error {
	if err := by.May(staff.ManageUsers, 0); err != nil {
		return err
	}
	before, err := s.Store.Segment(ctx, id)
	if err != nil {
		return err
	}
	return s.Store.DeleteSegment(context.WithoutCancel(ctx), id, entry(by, "segment.delete", id, shown(before), nil))
}

// Clone copies a segment under another name.
func (s *Service) Clone(ctx context.Context, by staff.Actor, id int64, name string) (Segment, error) {
	if err := by.May(staff.ManageUsers, 0); err != nil {
		return Segment{}, err
	}
	if err := checkName(name).Err(); err != nil {
		return Segment{}, err
	}
	g, err := s.Store.Segment(ctx, id)
	if err != nil {
		return Segment{}, err
	}
	if err := s.checkRule(ctx, by, g.Rule); err != nil {
		return Segment{}, err
	}
	name = strings.TrimSpace(name)
	return s.Store.CloneSegment(context.WithoutCancel(ctx), id, name,
		entry(by, "segment.create", 0, nil, map[string]any{"name": name, "copy_of": fmt.Sprint(id)}))
}

// Estimate says about how many users the rule means. It returns a
// [fault.Fields] for a rule that makes no sense, and a fault of the kind
// Unavailable if it cannot be told quickly.
func (s *Service) Estimate(ctx context.Context, by staff.Actor, r Rule) (Estimate, error) {
	if err := by.May(staff.View, 0); err != nil {
		return Estimate{}, err
	}
	if err := r.Check(); err != nil {
		return Estimate{}, err
	}
	if err := s.checkRule(ctx, by, r); err != nil {
		return Estimate{}, err
	}
	return s.Store.EstimateRule(ctx, r)
}

// Count starts the job that counts the members exactly. Asked again with the
// same request key it returns the job of the first time, unless that is empty.
func (s *Service) Count(ctx context.Context, by staff.Actor, id int64, requestKey string) (job.Job, error) {
	if err := by.May(staff.ManageUsers, 0); err != nil {
		return job.Job{}, err
	}
	g, err := s.Store.Segment(ctx, id)
	if err != nil {
		return job.Job{}, err
	}
	if g.Kind == ByList {
		return job.Job{}, ErrIsList
	}
	if err := s.checkRule(ctx, by, g.Rule); err != nil {
		return job.Job{}, err
	}
	return s.Jobs.Start(ctx, by, job.New{Kind: CountJob, Title: g.Name, Params: params(g), RequestKey: requestKey}, staff.ManageUsers)
}

func createdBy(a staff.Actor) string { return strings.TrimSpace(a.Label + " " + a.Name) }

func entry(by staff.Actor, action string, id int64, before, after any) staff.Entry {
	e := staff.Entry{Actor: by, Action: action, ObjectKind: "segment", Before: before, After: after}
	if id != 0 {
		e.ObjectID = fmt.Sprint(id)
	}
	return e
}

// shown is what the audit log keeps of a segment.
func shown(g Segment) map[string]any {
	m := map[string]any{"name": g.Name, "kind": g.Kind}
	if g.Kind == ByRules {
		m["rule"] = g.Rule
	}
	return m
}
