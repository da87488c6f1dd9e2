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
	// CreateSegment stores a new segment and returns it with its id. A second call
	// with the same request key, unless the key is empty, returns the first
	// segment.
	CreateSegment(ctx context.Context, s Segment, requestKey string, e staff.Entry) (Segment, error)
	// SaveSegment changes name and rule if the stored version is s's, otherwise it
	// returns [fault.ErrStale] or [ErrNotFound]. Changing the rule removes the
	// count.
	SaveSegment(ctx context.Context, s Segment, e staff.Entry) (Segment, error)
	// DeleteSegment deletes the segment for good. It returns [ErrInUse] if
	// something that has not ended refers to the segment.
	DeleteSegment(ctx context.Context, id int64, e staff.Entry) error
	// CloneSegment copies the segment, a list with its members.
	CloneSegment(ctx context.Context, id int64, name string, e staff.Entry) (Segment, error)
	// Uses lists uses of the segment: first uses that have not ended, the newest first.
	Uses(ctx context.Context, id int64) ([]Use, error)
	// FillList stores the job that adds to the list as [job.Store.StartJob] does.
	// It returns [ErrListInUse] while a campaign keeps the list. Of a file and a
	// publication at the same moment one is refused.
	FillList(ctx context.Context, id int64, j job.Job, requestKey string, e staff.Entry) (job.Job, error)
	// Files returns the jobs that fill the list, the latest first, at most limit.
	Files(ctx context.Context, id int64, limit int) ([]job.Job, error)
	// EstimateRule answers within a fraction of a second, however many users
	// there are.
	EstimateRule(ctx context.Context, r Rule) (Estimate, error)
	// AttributeNames returns at most limit names of attributes that most users have, by name.
	AttributeNames(ctx context.Context, limit int) ([]string, error)
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

// Service holds the use cases of segments. Segments belong to no shop: staff who may
// see users may see segments, and staff who may change users may change segments.
// Staff who are limited to shops may name and count only templates of these shops.
type Service struct {
	Store Store
	Jobs  Jobs
	// Tables opens the files of lists.
	Tables job.Tables
}

// Spec is the input of staff for a segment by rules.
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

// Uses lists what refers to the segment, first the uses that have not ended.
func (s *Service) Uses(ctx context.Context, by staff.Actor, id int64) ([]Use, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return s.Store.Uses(ctx, id)
}

// maxFiles is how many files of a list are shown.
const maxFiles = 20

// Files returns the jobs of the files that were added to the list last, the latest
// first; none for a segment by rules.
func (s *Service) Files(ctx context.Context, by staff.Actor, id int64) ([]job.Job, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return s.Store.Files(ctx, id, maxFiles)
}

// Create stores a segment by rules. A repeated call with the same request key
// returns the segment of the first call; with an empty key each call makes another
// segment. It returns [staff.ErrForbidden] or a [fault.Fields].
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
// uploaded file; uploadID 0 means no file and no job. A repeated call with the same
// request key returns the list of the first call; with an empty key each call makes
// another list. It returns [staff.ErrForbidden], [job.ErrUploadNotFound] or a
// [fault.Fields], also about a "file" that holds no ids; nothing is stored then.
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

// MayAdd returns the list if users can be added to it now. Callers ask it before an
// upload. It returns [ErrIsRules] for a segment that is no list, and [ErrListInUse]
// while a campaign keeps the list from changing.
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

// AddFile adds the ids of another file to a list. A repeated call with the same
// request key returns the job of the first call; with an empty key, the same upload
// is added once. It returns the errors of [Service.MayAdd], and a [fault.Fields]
// about a "file" that holds no ids.
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

// Save changes a segment by rules, if it has not changed since version. For a list
// only the name may change. It returns [fault.ErrStale], [ErrNotFound], [ErrIsList]
// if the rule of a list is to be changed, or a [fault.Fields].
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

// Delete removes a segment. It returns [ErrInUse] if something still needs the
// segment.
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

// mostAttributes bounds the names of attributes that are offered.
const mostAttributes = 100

// AttributeNames returns the names of the attributes that most users have, by name. Large tables are
// sampled.
func (s *Service) AttributeNames(ctx context.Context, by staff.Actor) ([]string, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return s.Store.AttributeNames(ctx, mostAttributes)
}

// Estimate returns about how many users match the rule. It returns a [fault.Fields]
// for an invalid rule, and a fault of the kind Unavailable if a quick estimate is
// not possible.
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

// Count starts the job that counts the members exactly. A repeated call with the
// same request key, unless it is empty, returns the job of the first call.
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

// shown returns the fields of a segment that the audit log keeps.
func shown(g Segment) map[string]any {
	m := map[string]any{"name": g.Name, "kind": g.Kind}
	if g.Kind == ByRules {
		m["rule"] = g.Rule
	}
	return m
}
