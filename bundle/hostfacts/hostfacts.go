// Package hostfacts is the shape of the files under host/ in a bundle: what the collector saw of the machine.
//
// The collector writes these types as JSON, the analyzer reads them; both
// import this package and it imports nothing of ours. Fields are added, never
// renamed. A pointer is nil, and a slice absent, when the collector could not
// tell; an empty slice says that there is none. Times are RFC 3339 in UTC by
// the node's own clock, sizes are bytes.
package hostfacts

import "time"

// Paths of the files, as paths on the node's root in a bundle.
const (
	NodePath       = "/host/node.json"       // Node
	ClockPath      = "/host/clock.json"      // Clock
	ProcessesPath  = "/host/processes.json"  // []Process
	SocketsPath    = "/host/sockets.json"    // []Socket
	MountsPath     = "/host/mounts.json"     // []Mount
	BlocksPath     = "/host/blocks.json"     // []Block
	InterfacesPath = "/host/interfaces.json" // []Interface
	UnitsPath      = "/host/units.json"      // []Unit
	SysctlsPath    = "/host/sysctls.json"    // map[string]string
)

// A Node is the machine as a whole.
type Node struct {
	Hostname     string     `json:"hostname"`
	MachineID    string     `json:"machineID,omitempty"` // /etc/machine-id
	BootID       string     `json:"bootID,omitempty"`    // /proc/sys/kernel/random/boot_id
	BootTime     *time.Time `json:"bootTime,omitempty"`
	Kernel       string     `json:"kernel,omitempty"` // release
	OS           string     `json:"os,omitempty"`     // PRETTY_NAME of os-release
	Arch         string     `json:"arch,omitempty"`
	CPUs         int        `json:"cpus,omitempty"`
	MemTotal     int64      `json:"memTotal,omitempty"`
	MemAvailable int64      `json:"memAvailable,omitempty"`
	Swaps        []Swap     `json:"swaps"` // nil: not known
	CgroupV2     *bool      `json:"cgroupV2,omitempty"`
	Virt         string     `json:"virt,omitempty"` // "kvm", "vmware", "none", ...
	Vendor       string     `json:"vendor,omitempty"`
	Product      string     `json:"product,omitempty"`
	SystemUUID   string     `json:"systemUUID,omitempty"` // DMI
}

// A Swap is an active swap area.
type Swap struct {
	Device string `json:"device"`
	Size   int64  `json:"size"`
	Used   int64  `json:"used"`
}

// A Clock is the machine's clock at collection.
type Clock struct {
	Start         time.Time `json:"start"` // wall clock when collection began
	End           time.Time `json:"end"`
	MonotonicNano int64     `json:"monotonicNano,omitempty"` // monotonic time between Start and End; differs from their distance when the clock was stepped
	Zone          string    `json:"zone,omitempty"`          // "Asia/Seoul"
	UTCOffset     *int      `json:"utcOffset,omitempty"`     // seconds east of UTC of local time
	Synchronized  *bool     `json:"synchronized,omitempty"`
	Service       string    `json:"service,omitempty"`       // "chronyd", "systemd-timesyncd", "ntpd"
	Source        string    `json:"source,omitempty"`        // the server used
	OffsetSeconds *float64  `json:"offsetSeconds,omitempty"` // of the clock from its source, positive if ahead
}

// A Process is one process of the control plane or of the node's services. Its
// arguments are those of known programs only, with values of secrets removed.
type Process struct {
	PID         int        `json:"pid"`
	PPID        int        `json:"ppid,omitempty"`
	Comm        string     `json:"comm"`
	Exe         string     `json:"exe,omitempty"`
	Args        []string   `json:"args,omitempty"`
	StartedAt   *time.Time `json:"startedAt,omitempty"`
	ContainerID string     `json:"containerID,omitempty"` // from its control group
	UID         int        `json:"uid"`
	RSS         int64      `json:"rss,omitempty"`
	OpenFiles   int        `json:"openFiles,omitempty"`
	FileLimit   int64      `json:"fileLimit,omitempty"` // soft RLIMIT_NOFILE
	State       string     `json:"state,omitempty"`     // "S", "D", "Z", ...
}

// A Socket is a listening socket.
type Socket struct {
	Proto   string `json:"proto"`   // "tcp", "tcp6", "udp", "unix"
	Address string `json:"address"` // without port; "0.0.0.0" and "::" for all; path of a unix socket
	Port    int    `json:"port,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Comm    string `json:"comm,omitempty"`
}

// A Mount is a mounted file system with its use.
type Mount struct {
	Device     string `json:"device"`
	MountPoint string `json:"mountPoint"`
	FSType     string `json:"fsType"`
	Options    string `json:"options,omitempty"`
	DevNumber  string `json:"devNumber,omitempty"` // "8:1"
	ReadOnly   bool   `json:"readOnly,omitempty"`
	Size       int64  `json:"size,omitempty"` // 0: not asked (network or pseudo file system)
	Free       int64  `json:"free"`           // for root
	Available  int64  `json:"available"`      // for others
	Inodes     int64  `json:"inodes,omitempty"`
	InodesFree int64  `json:"inodesFree"`
	Error      string `json:"error,omitempty"`
}

// A Block is a block device.
type Block struct {
	Name       string `json:"name"` // "sda", "dm-0"
	DevNumber  string `json:"devNumber,omitempty"`
	Size       int64  `json:"size,omitempty"`
	Rotational *bool  `json:"rotational,omitempty"`
	Model      string `json:"model,omitempty"`
	Parent     string `json:"parent,omitempty"` // whole disk of a partition
	Scheduler  string `json:"scheduler,omitempty"`
}

// An Interface is a network interface.
type Interface struct {
	Name      string   `json:"name"`
	Up        bool     `json:"up"`
	MTU       int      `json:"mtu,omitempty"`
	Addresses []string `json:"addresses"` // "10.0.0.11/24"
}

// A Unit is a systemd unit.
type Unit struct {
	Name           string     `json:"name"` // "kubelet.service"
	LoadState      string     `json:"loadState,omitempty"`
	ActiveState    string     `json:"activeState"`         // "active", "inactive", "failed", "activating"
	SubState       string     `json:"subState,omitempty"`  // "running", "auto-restart", "dead"
	FileState      string     `json:"fileState,omitempty"` // "enabled", "disabled", "masked"
	Result         string     `json:"result,omitempty"`    // "success", "exit-code", "oom-kill"
	Restarts       int        `json:"restarts,omitempty"`  // NRestarts
	ExitStatus     int        `json:"exitStatus,omitempty"`
	MainPID        int        `json:"mainPID,omitempty"`
	ActiveSince    *time.Time `json:"activeSince,omitempty"`
	InactiveSince  *time.Time `json:"inactiveSince,omitempty"`
	StateChangedAt *time.Time `json:"stateChangedAt,omitempty"`
}
