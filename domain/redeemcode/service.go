package redeemcode

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// NewBatch is the input for creating a batch.
type NewBatch struct {
	TemplateID int64
	Count      int64
	Key        KeyID
	CreatedBy  string
	// RequestKey makes the request repeatable: a second request with the same key
	// gets the batch of the first request. Empty = none.
	RequestKey string
}

// Store keeps batches. No method ever returns or takes a code.
type Store interface {
	// Template returns [template.ErrNotFound] if there is none.
	Template(ctx context.Context, id int64) (template.Template, error)
	// CreateBatch gives the batch its serial numbers, stores it and starts the job
	// that generates it, in one transaction. It returns [ErrNoSerials] when no
	// serial numbers are left, and [ErrEnded] or [ErrNotByCode] if the template has
	// ended or takes no codes any more.
	CreateBatch(ctx context.Context, n NewBatch, start func(batchID int64) (job.Job, staff.Entry, error), e staff.Entry) (Batch, error)
	// Batch returns [ErrBatchNotFound] if there is none.
	Batch(ctx context.Context, id int64) (Batch, error)
	Batches(ctx context.Context, q Query) ([]Batch, error)
	// BatchOf returns the batch that holds s, or [ErrBatchNotFound].
	BatchOf(ctx context.Context, s Serial) (Batch, error)
	Supply(ctx context.Context, templateID int64) (Supply, error)
	// RevokeBatch ends a batch; from then on the database itself refuses its
	// codes. A batch that was revoked before returns [ErrRevoked].
	RevokeBatch(ctx context.Context, id int64, by, reason string, e staff.Entry) (Batch, error)
	// Parts returns the checksums in order.
	Parts(ctx context.Context, batchID int64) ([]Part, error)
	// UseOf returns the use of a code; false if the code was not used.
	UseOf(ctx context.Context, s Serial) (Use, bool, error)
	// Record stores an entry of the audit log.
	Record(ctx context.Context, e staff.Entry) error
}

// Service holds the use cases of staff around codes.
type Service struct {
	Store Store
	Keys  *Keyring
	Now   func() time.Time
}

// Generate begins to make count codes for the template, in the background. It
// returns [fault.Fields] naming count, [template.ErrNotFound],
// [staff.ErrForbidden], [ErrNotByCode], [ErrEnded] or [ErrNoKeys].
func (s *Service) Generate(ctx context.Context, by staff.Actor, templateID, count int64, requestKey string) (Batch, error) {
	t, err := s.template(ctx, by, staff.ManageTemplates, templateID)
	if err != nil {
		return Batch{}, err
	}
	if err := checkCount(count); err != nil {
		return Batch{}, err
	}
	if err := s.MayGenerate(t); err != nil {
		return Batch{}, err
	}
	key, err := s.Keys.Newest()
	if err != nil {
		return Batch{}, err
	}
	n := NewBatch{TemplateID: t.ID, Count: count, Key: key, CreatedBy: by.Label + " " + by.Name, RequestKey: requestKey}
	e := entry(by, "codes.generate", t.ID, t.ShopNumber, "")
	e.After = map[string]any{"count": count, "key": key}
	return s.Store.CreateBatch(ctx, n, func(batchID int64) (job.Job, staff.Entry, error) {
		return generation(by, t, batchID, count)
	}, e)
}

// MayGenerate returns nil if codes could be made for t now, otherwise the reason;
// see [Service.Generate].
func (s *Service) MayGenerate(t template.Template) error {
	if err := sellable(t, s.Now()); err != nil {
		return err
	}
	_, err := s.Keys.Newest()
	return err
}

// generation is the job that makes a batch's codes, with its audit entry.
func generation(by staff.Actor, t template.Template, batchID, count int64) (job.Job, staff.Entry, error) {
	params, err := json.Marshal(GenerateParams{batchID})
	j := job.Job{Kind: JobKind, Title: t.Name, ShopNumber: t.ShopNumber, Needs: staff.ManageTemplates, Params: params, Total: count,
		Actor: by, CreatedBy: by.Label + " " + by.Name}
	return j, staff.Entry{Actor: by, Action: "job.start", ObjectKind: "job", ShopNumber: t.ShopNumber,
		After: map[string]any{"kind": JobKind, "batch_id": strconv.FormatInt(batchID, 10)}}, err
}

// Batches lists the batches of a template that the actor may see.
func (s *Service) Batches(ctx context.Context, by staff.Actor, q Query) ([]Batch, error) {
	if q.TemplateID != 0 {
		if _, err := s.template(ctx, by, staff.View, q.TemplateID); err != nil {
			return nil, err
		}
	} else if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	q.Shops = by.Shops
	return s.Store.Batches(ctx, q)
}

// Batch returns one batch of the template, or [ErrBatchNotFound].
func (s *Service) Batch(ctx context.Context, by staff.Actor, templateID, id int64) (Batch, error) {
	return s.load(ctx, by, staff.View, templateID, id)
}

// Supply compares the template's codes with its coupons.
func (s *Service) Supply(ctx context.Context, by staff.Actor, templateID int64) (Supply, error) {
	if _, err := s.template(ctx, by, staff.View, templateID); err != nil {
		return Supply{}, err
	}
	return s.Store.Supply(ctx, templateID)
}

// Revoke revokes the unused codes of a batch; issued coupons stay. It returns
// [ErrRevoked] if the batch was revoked before.
func (s *Service) Revoke(ctx context.Context, by staff.Actor, templateID, id int64, reason string) (Batch, error) {
	b, err := s.load(ctx, by, staff.ManageTemplates, templateID, id)
	if err != nil {
		return b, err
	}
	if err := checkReason(reason); err != nil {
		return b, err
	}
	e := entry(by, "codes.revoke", b.TemplateID, b.ShopNumber, reason)
	e.Before = map[string]any{"batch_id": strconv.FormatInt(b.ID, 10), "state": b.State, "count": b.Count, "used": b.Used}
	e.After = map[string]any{"state": Revoked}
	return s.Store.RevokeBatch(ctx, b.ID, by.Label+" "+by.Name, reason, e)
}

// An Export is batches whose codes may be handed out; see [Service.Write].
type Export struct {
	TemplateID int64
	Batches    []Batch
	by         staff.Actor
}

// Codes returns how many there are.
func (x Export) Codes() (n int64) {
	for _, b := range x.Batches {
		n += b.Count
	}
	return n
}

// exportPage is how many batches are looked up at a time; a file has all.
const exportPage = 1000

// Export prepares one batch of the template, or with batchID 0 all batches that are
// not revoked, oldest first. It returns [ErrNotReady] while one of them is being
// generated, because a part could be taken for the whole; [ErrRevoked]; [ErrNoCodes]
// if there are none; [ErrKeyMissing].
func (s *Service) Export(ctx context.Context, by staff.Actor, templateID, batchID int64) (Export, error) {
	x := Export{TemplateID: templateID, by: by}
	if _, err := s.template(ctx, by, staff.ManageTemplates, templateID); err != nil {
		return x, err
	}
	list, err := s.candidates(ctx, templateID, batchID)
	if err != nil {
		return x, err
	}
	for i := len(list) - 1; i >= 0; i-- {
		b := list[i]
		if err := s.exportable(b); err != nil {
			if batchID != 0 || !b.Stopped() && b.State != Revoked {
				return x, err
			}
			continue
		}
		x.Batches = append(x.Batches, b)
	}
	if len(x.Batches) == 0 {
		return x, ErrNoCodes
	}
	return x, nil
}

func (s *Service) candidates(ctx context.Context, templateID, batchID int64) ([]Batch, error) {
	if batchID == 0 {
		return s.allBatches(ctx, templateID)
	}
	b, err := s.Store.Batch(ctx, batchID)
	if err == nil && b.TemplateID != templateID {
		err = ErrBatchNotFound
	}
	return []Batch{b}, err
}

// allBatches returns every batch of the template, the newest first.
func (s *Service) allBatches(ctx context.Context, templateID int64) (all []Batch, err error) {
	q := Query{TemplateID: templateID, Limit: exportPage}
	for {
		page, err := s.Store.Batches(ctx, q)
		if all = append(all, page...); err != nil || len(page) < q.Limit {
			return all, err
		}
		q.Before = page[len(page)-1].ID
	}
}

func (s *Service) exportable(b Batch) error {
	switch {
	case b.State == Revoked:
		return ErrRevoked
	case b.State != Ready:
		return ErrNotReady
	case s.Keys.cipher(b.Key) == nil:
		return ErrKeyMissing
	}
	return nil
}

// Write records in the audit log that the actor takes the codes, and then writes
// them as CSV, a line each, with a heading. It compares every part with its
// checksum before it writes any code of the part, and returns [ErrKeyMissing] if
// they differ. Memory does not grow with the number of codes.
func (s *Service) Write(ctx context.Context, x Export, w io.Writer) error {
	e := entry(x.by, "codes.export", x.TemplateID, x.shop(), "")
	ids := make([]string, len(x.Batches))
	for i, b := range x.Batches {
		ids[i] = strconv.FormatInt(b.ID, 10)
	}
	e.After = map[string]any{"codes": x.Codes(), "batches": ids}
	if err := s.Store.Record(ctx, e); err != nil {
		return err
	}
	head := "code,batch_id\n"
	for _, b := range x.Batches {
		if err := s.writeBatch(ctx, b, head, w); err != nil {
			return err
		}
		head = ""
	}
	return nil
}

func (x Export) shop() int64 {
	if len(x.Batches) == 0 {
		return 0
	}
	return x.Batches[0].ShopNumber
}

func (s *Service) writeBatch(ctx context.Context, b Batch, head string, w io.Writer) error {
	parts, err := s.Store.Parts(ctx, b.ID)
	if err != nil {
		return err
	}
	if int64(len(parts)) != b.parts() {
		return fmt.Errorf("batch %d has %d of %d checksums", b.ID, len(parts), b.parts())
	}
	rows, tail := []byte(head), ","+strconv.FormatInt(b.ID, 10)+"\n"
	for _, p := range parts {
		first, count := b.part(p.Number)
		sum, line := sha256.New(), make([]byte, 0, 32)
		err := s.Keys.each(b.Key, first, count, func(c Code) error {
			line = append(c.append(line[:0]), '\n')
			sum.Write(line)
			rows = append(append(rows, line[:len(line)-1]...), tail...)
			return nil
		})
		if err != nil {
			return err
		}
		if [32]byte(sum.Sum(nil)) != p.SHA256 {
			return ErrKeyMissing
		}
		if _, err := w.Write(rows); err != nil {
			return err
		}
		rows = rows[:0]
	}
	return nil
}

func (s *Service) template(ctx context.Context, by staff.Actor, p staff.Permission, id int64) (template.Template, error) {
	t, err := s.Store.Template(ctx, id)
	if err != nil {
		return t, err
	}
	return t, by.May(p, t.ShopNumber)
}

func (s *Service) load(ctx context.Context, by staff.Actor, p staff.Permission, templateID, id int64) (Batch, error) {
	if _, err := s.template(ctx, by, p, templateID); err != nil {
		return Batch{}, err
	}
	b, err := s.Store.Batch(ctx, id)
	if err == nil && b.TemplateID != templateID {
		err = ErrBatchNotFound
	}
	return b, err
}

func entry(by staff.Actor, action string, templateID, shop int64, reason string) staff.Entry {
	return staff.Entry{Actor: by, Action: action, ObjectKind: "template", ObjectID: strconv.FormatInt(templateID, 10), ShopNumber: shop, Reason: reason}
}
