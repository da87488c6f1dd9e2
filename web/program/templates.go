package program

import (
	"context"

	"dropbell/adapters/lookup"
	"dropbell/domain/template"
)

// refreshingStore saves templates and removes them from this process's cache. Other processes
// remove them when they receive the event.
type refreshingStore struct {
	template.Store
	cache *lookup.Templates
}

func (k refreshingStore) Insert(ctx context.Context, c template.Change) (template.Template, error) {
	t, err := k.Store.Insert(ctx, c)
	if err == nil {
		k.cache.Forget(t.ID)
	}
	return t, err
}

func (k refreshingStore) Save(ctx context.Context, c template.Change) (template.Template, error) {
	defer k.cache.Forget(c.Template.ID)
	return k.Store.Save(ctx, c)
}
