//! What needs several of the services at once: the simulation, its model and its faults.

pub mod sim;
