package redeemcode_test

import (
	"context"
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// fakeStore is a store of batches by ascending id.
type fakeStore struct {
	redeemcode.Store
	batches []redeemcode.Batch
}

func (s *fakeStore) Template(_ context.Context, id int64) (template.Template, error) {
	return template.Template{ID: id}, nil
}

func (s *fakeStore) Batches(_ context.Context, q redeemcode.Query) (page []redeemcode.Batch, _ error) {
	for _, b := range slices.Backward(s.batches) {
		if len(page) < q.Limit && (q.Before == 0 || b.ID < q.Before) {
			page = append(page, b)
		}
	}
	return page, nil
}

// A file of a template's codes has all of them, oldest first. It is refused while a
// batch is being generated, however old the batch is.
func TestExportLeavesNoBatchOut(t *testing.T) {
	keys, err := redeemcode.ParseKeys("1:" + base64.StdEncoding.EncodeToString([]byte("a key of 32 bytes, for tests one")))
	if err != nil {
		t.Fatal(err)
	}
	store := &fakeStore{}
	s := &redeemcode.Service{Store: store, Keys: keys, Now: time.Now}
	for _, n := range []int64{1, 999, 1000, 1001, 2000, 2503} {
		for id := int64(len(store.batches)) + 1; id <= n; id++ {
			store.batches = append(store.batches, redeemcode.Batch{ID: id, TemplateID: 7, Key: 1, State: redeemcode.Ready, Count: 2})
		}
		x, err := s.Export(t.Context(), staff.System(), 7, 0)
		if err != nil || int64(len(x.Batches)) != n || x.Codes() != 2*n || x.Batches[0].ID != 1 {
			t.Errorf("%d batches: %d are exported, from %d on, %v", n, len(x.Batches), x.Batches[0].ID, err)
		}
	}
	store.batches[0].State, store.batches[0].JobState = redeemcode.Generating, job.Running
	if _, err := s.Export(t.Context(), staff.System(), 7, 0); err == nil {
		t.Error("a part is taken for the whole")
	}
}
