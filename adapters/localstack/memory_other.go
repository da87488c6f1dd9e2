//go:build unix && !linux

package localstack

// memoryDir returns "", the usual place: there is no common directory in memory.
func memoryDir() string { return "" }
